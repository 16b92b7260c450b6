/** Layered layout of slots, by dagre: one layout for both graphs, so that equal values stand level. */
import dagre from "@dagrejs/dagre";

export interface Box {
  key: string;
  width: number;
  height: number;
}

export interface Place extends Box {
  /** Of its centre. */
  x: number;
  y: number;
}

export interface Edge {
  from: string;
  to: string;
  path: string;
}

export interface Frame {
  /** Of its upper left corner. */
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Layout {
  /** Around the boxes that belong together, if some do. */
  group: Frame | null;
  width: number;
  height: number;
  places: Map<string, Place>;
  edges: Edge[];
}

/** No box is called so: keys are names and numbers. */
const GROUP = "\0group";
/** Network simplex gives the tidiest layers; beyond so many boxes, it takes most of the time. */
const MOST_FOR_SIMPLEX = 150;

/** Lay out boxes; those in `together` stand in a frame of their own. */
export function layOut(
  boxes: Box[],
  edges: { from: string; to: string }[],
  together = new Set<string>(),
): Layout {
  if (boxes.length === 0) return { group: null, width: 0, height: 0, places: new Map(), edges: [] };
  const graph = new dagre.graphlib.Graph({ compound: together.size > 0 });
  graph.setGraph({
    rankdir: "TB",
    nodesep: 14,
    ranksep: 26,
    edgesep: 8,
    marginx: 12,
    marginy: 12,
    ranker: boxes.length > MOST_FOR_SIMPLEX ? "tight-tree" : "network-simplex",
  });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const box of boxes) graph.setNode(box.key, { width: box.width, height: box.height });
  for (const edge of edges) graph.setEdge(edge.from, edge.to);
  if (together.size > 0) graph.setNode(GROUP, { paddingTop: 18 });
  for (const key of together) graph.setParent(key, GROUP);
  dagre.layout(graph);
  const places = new Map<string, Place>();
  for (const box of boxes) {
    const { x, y } = graph.node(box.key) as { x: number; y: number };
    places.set(box.key, { ...box, x, y });
  }
  const size = graph.graph() as { width?: number; height?: number };
  return {
    group: together.size > 0 ? corner(graph.node(GROUP) as Place) : null,
    width: size.width ?? 0,
    height: size.height ?? 0,
    places,
    edges: graph.edges().map((edge) => ({
      from: edge.v,
      to: edge.w,
      path: curve((graph.edge(edge) as { points: Point[] }).points),
    })),
  };
}

function corner({ x, y, width, height }: Place): Frame {
  return { x: x - width / 2, y: y - height / 2, width, height };
}

interface Point {
  x: number;
  y: number;
}

/** A smooth path through the midpoints of a polyline, with its ends. */
function curve(points: Point[]): string {
  const [first, ...others] = points;
  const last = others.pop();
  if (first === undefined || last === undefined) return "";
  let path = `M${round(first)}`;
  others.forEach((point, n) => {
    const next = others[n + 1] ?? last;
    const middle = { x: (point.x + next.x) / 2, y: (point.y + next.y) / 2 };
    path +=
      n + 1 < others.length
        ? `Q${round(point)} ${round(middle)}`
        : `Q${round(point)} ${round(last)}`;
  });
  return others.length === 0 ? `${path}L${round(last)}` : path;
}

function round({ x, y }: Point): string {
  return `${x.toFixed(1)},${y.toFixed(1)}`;
}
