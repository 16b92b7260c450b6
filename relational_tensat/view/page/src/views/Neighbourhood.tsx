/** A class with those that it is computed from and those that take it; a click shows more around another. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { EClass, PageData } from "../data";
import { short } from "../format";
import { type Layout, layOut } from "../graph/layout";
import type { Source } from "../source";

/** Neighbours on each side of a class that are drawn; the rest is counted. */
const MOST_BESIDE = 8;
const LINES = 4;
/** Classes that are drawn at most. */
const MOST_ASKED = 120;

interface Props {
  data: PageData;
  source: Source;
  centre: EClass;
}

export function Neighbourhood({ data, source, centre }: Props) {
  const [open, setOpen] = useState<EClass[]>([centre]);
  const [known, setKnown] = useState(new Map<number, EClass>());
  useEffect(() => {
    setOpen([centre]);
  }, [centre]);
  const ids = useMemo(
    () => [...new Set(open.flatMap((item) => [item.id, ...beside(item)]))],
    [open],
  );
  useEffect(() => {
    let isLast = true;
    void source.eclasses(ids.slice(0, MOST_ASKED)).then((found) => {
      if (isLast) setKnown(new Map(found.map((item) => [item.id, item])));
    });
    return () => {
      isLast = false;
    };
  }, [ids, source]);
  const shown = ids.flatMap((id) => known.get(id) ?? []);
  const layout = useMemo(() => arrange(shown, data), [known, data]);
  const expand = (event: Event) => {
    const key = (event.target as Element).closest<SVGGElement>(".class")?.dataset.class;
    const item = known.get(Number(key));
    if (item !== undefined && !open.includes(item)) setOpen([...open, item]);
  };
  const left = centre.users.length + operands(centre).length - beside(centre).length;
  return (
    <>
      <p class="hint">
        Above, what it is computed from; below, what takes it. Click a class to see more around it;
        its number leads there. {left > 0 ? `${left} more neighbours are not drawn.` : ""}
      </p>
      {shown.length === 0 ? <p>…</p> : null}
      <div
        class="panel neighbourhood"
        onClick={expand}
        onKeyDown={(event) => {
          if (event.key === "Enter") expand(event);
        }}
      >
        <svg
          class="drawing"
          role="img"
          aria-label="neighbourhood"
          width={layout.width}
          height={layout.height}
          viewBox={`0 0 ${layout.width} ${layout.height}`}
        >
          {layout.edges.map((edge) => (
            <path key={`${edge.from} ${edge.to}`} class="edge" d={edge.path} />
          ))}
          {shown.map((item) => (
            <Box
              key={item.id}
              item={item}
              data={data}
              layout={layout}
              isCentre={item.id === centre.id}
            />
          ))}
        </svg>
      </div>
    </>
  );
}

function operands(item: EClass): number[] {
  return [...new Set(item.enodes.flatMap((enode) => enode.children))];
}

function beside(item: EClass): number[] {
  return [...operands(item).slice(0, MOST_BESIDE), ...item.users.slice(0, MOST_BESIDE)];
}

function lines(item: EClass, data: PageData): string[] {
  const ops = item.enodes.map((enode) => {
    const op = data.forms[enode.form]?.op ?? "";
    return `${enode.chosen ? "✓ " : ""}${short(op, 16)}`;
  });
  const counts = new Map<string, number>();
  for (const op of ops) counts.set(op, (counts.get(op) ?? 0) + 1);
  const texts = [...counts].map(([op, times]) => (times > 1 ? `${op} × ${times}` : op));
  return texts.length > LINES
    ? [...texts.slice(0, LINES - 1), `… ${texts.length - LINES + 1} more`]
    : texts;
}

function title(item: EClass): string {
  return item.names[0] === undefined ? "" : short(item.names[0], 18);
}

function arrange(shown: EClass[], data: PageData): Layout {
  const ids = new Set(shown.map((item) => item.id));
  const boxes = shown.map((item) => {
    const texts = [...lines(item, data), `${item.id} ${title(item)}`];
    const longest = Math.max(...texts.map((text) => text.length));
    return {
      key: String(item.id),
      width: 24 + 7.2 * longest,
      height: 26 + 16 * lines(item, data).length,
    };
  });
  const edges = shown.flatMap((item) =>
    operands(item)
      .filter((child) => ids.has(child) && child !== item.id)
      .map((child) => ({ from: String(child), to: String(item.id) })),
  );
  return layOut(boxes, edges);
}

interface BoxProps {
  item: EClass;
  data: PageData;
  layout: Layout;
  isCentre: boolean;
}

function Box({ item, data, layout, isCentre }: BoxProps) {
  const place = layout.places.get(String(item.id));
  if (place === undefined) return null;
  const { x, y, width, height } = place;
  return (
    <g
      class={`class${isCentre ? " centre" : ""}${item.is_needed ? " needed" : ""}`}
      data-class={item.id}
      tabIndex={0}
      transform={`translate(${x - width / 2},${y - height / 2})`}
    >
      <rect width={width} height={height} rx={6} />
      <a href={`#class=${item.id}`}>
        <text x={width / 2} y={15} class="link">
          {item.id}
        </text>
      </a>
      {title(item) === "" ? null : <title>{title(item)}</title>}
      {lines(item, data).map((line, n) => (
        <text key={line} x={width / 2} y={32 + 16 * n}>
          {line}
        </text>
      ))}
    </g>
  );
}
