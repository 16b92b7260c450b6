/** Where the boxes of a μGraph stand: each level is laid out by itself, and is a box of the level above. */
import type { MuDrawing, MuNode } from "../data";
import { bytes, short } from "../format";
import { type Edge, layOut } from "../graph/layout";

export interface MuBox {
  node: MuNode;
  /** Of its upper left corner, within its level. */
  x: number;
  y: number;
  width: number;
  height: number;
  lines: string[];
  inner: MuLevel | null;
}

export interface MuLevel {
  width: number;
  height: number;
  boxes: MuBox[];
  edges: Edge[];
  /** The frame around what is done in each iteration of a loop. */
  loop: { x: number; y: number; width: number; height: number; times: number } | null;
}

export const LINE = 15;
const CHARACTER = 6.7;
const MOST_CHARACTERS = 34;
const PADDING = 10;

export function arranged(drawing: MuDrawing): MuLevel {
  return level(drawing.graph, drawing, 1);
}

function level(nodes: MuNode[], drawing: MuDrawing, times: number): MuLevel {
  const made = nodes.map((node) => box(node, drawing));
  const known = new Set(nodes.map((node) => node.id));
  const edges = nodes.flatMap((node) =>
    node.inputs.filter((id) => known.has(id)).map((from) => ({ from, to: node.id })),
  );
  const inLoop = new Set(times > 1 ? nodes.filter((n) => n.stage === "loop").map((n) => n.id) : []);
  const layout = layOut(
    made.map(({ node, width, height }) => ({ key: node.id, width, height })),
    edges,
    inLoop,
  );
  const boxes = made.map((item) => {
    const place = layout.places.get(item.node.id);
    const x = (place?.x ?? 0) - item.width / 2;
    return { ...item, x, y: (place?.y ?? 0) - item.height / 2 };
  });
  const loop = layout.group === null ? null : { ...layout.group, times };
  return { width: layout.width, height: layout.height, boxes, edges: layout.edges, loop };
}

/** A box as large as its text and what is within it. */
function box(node: MuNode, drawing: MuDrawing): MuBox {
  const kernel = node.kernel === null ? undefined : drawing.kernels[node.kernel];
  const lines = kernel === undefined ? textOf(node) : headOf(kernel);
  const inner =
    kernel !== undefined
      ? level(kernel.block, drawing, kernel.loop)
      : node.inner.length > 0
        ? level(node.inner, drawing, 1)
        : null;
  const text = Math.max(...lines.map((line) => line.length)) * CHARACTER + 2 * PADDING;
  const width = Math.max(text, (inner?.width ?? 0) + 2 * PADDING);
  const height = lines.length * LINE + 12 + (inner === null ? 0 : inner.height + PADDING);
  return { node, x: 0, y: 0, width, height, lines, inner };
}

function textOf(node: MuNode): string[] {
  const dims = node.dims === "" ? [] : [`[${node.dims}]`];
  return [node.title, ...node.about, ...dims].map((line) => short(line, MOST_CHARACTERS));
}

function headOf(kernel: MuDrawing["kernels"][number]): string[] {
  const shared = kernel.shared_bytes === null ? [] : [`${bytes(kernel.shared_bytes)} shared`];
  return [`kernel ${short(kernel.name, 24)}`, [gridText(kernel.grid), ...shared].join(" · ")];
}

/** The extents of a grid, by axis. */
export function gridText(grid: number[]): string {
  const axes = grid.map((size, axis) => `${"xyz"[axis] ?? ""}=${size}`);
  return axes.length === 0 ? "one block" : `grid ${axes.join(" ")}`;
}
