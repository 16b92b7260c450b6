/** Plots, drawn by Observable Plot: each with a title, axes with units, and what it plots as its text. */
import * as Plot from "@observablehq/plot";
import { useEffect, useRef, useState } from "preact/hooks";

type Row = Record<string, number | string | boolean | null>;

/** An SVG that Plot makes as wide as there is room, whenever that or the data changes. */
function Figure({
  title,
  draw,
}: {
  title: string;
  draw: (width: number) => SVGSVGElement | HTMLElement;
}) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const target = box.current;
    if (target === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(Math.floor(target.clientWidth)));
    observer.observe(target);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (width > 0) box.current?.replaceChildren(draw(width));
  }, [draw, width]);
  return (
    <figure>
      <figcaption>{title}</figcaption>
      <div class="plot" ref={box} role="img" aria-label={title} />
    </figure>
  );
}

/** Ticks at whole numbers where there are only such. */
function whole(points: Row[], x: string): Plot.ScaleOptions {
  const isWhole = points.every((point) => Number.isInteger(point[x]));
  const values = new Set(points.map((point) => point[x]));
  const all = [...values] as number[];
  const isDense = Math.max(...all) - Math.min(...all) < 16;
  return isWhole && isDense ? { ticks: all, tickFormat: "d" } : {};
}

export interface Series {
  key: string;
  name: string;
  colour: string;
  dash?: string;
}

/** Room around values that are all the same. */
function flat(points: Row[], series: Series[]): Plot.ScaleOptions {
  const values = new Set(points.flatMap((point) => series.map(({ key }) => point[key] ?? null)));
  values.delete(null);
  const [only] = values;
  return values.size === 1 && typeof only === "number" ? { domain: [0, 1.25 * only || 1] } : {};
}

interface LinesProps {
  title: string;
  points: Row[];
  x: string;
  xLabel?: string;
  series: Series[];
  unit: string;
  height?: number;
  /** Whether the axis begins at 0. */
  zero?: boolean;
  /** A place on the x axis that is marked. */
  mark?: number;
}

/** A line for a title alone. */
export function single(key: string): Series[] {
  return [{ key, name: "", colour: "var(--new-line)" }];
}

/** Lines over one axis; several are named in a legend and told apart by their dashes, too. */
export function Lines(props: LinesProps) {
  const { title, points, x, series, unit } = props;
  return (
    <>
      <Figure
        title={title}
        draw={(width) =>
          Plot.plot({
            width,
            height: props.height ?? 240,
            marginLeft: 60,
            grid: true,
            x: { label: props.xLabel ?? x, ...whole(points, x) },
            y: { label: unit, nice: true, zero: props.zero ?? true, ...flat(points, series) },
            marks: [
              props.mark === undefined
                ? null
                : Plot.ruleX([props.mark], { stroke: "currentColor", strokeDasharray: "3 3" }),
              ...series.flatMap((one) => line(points, x, one)),
            ],
          })
        }
      />
      {series.length > 1 ? <Names series={series} /> : null}
    </>
  );
}

/** A stepped line and its points, where it has values. */
function line(points: Row[], x: string, { key, colour, dash }: Series): Plot.Markish[] {
  const own = points.filter((point) => point[key] !== null && point[key] !== undefined);
  const stroke = { stroke: colour, strokeWidth: 2, strokeDasharray: dash ?? "none" };
  return [
    Plot.lineY(own, { x, y: key, ...stroke, curve: "step-after" }),
    Plot.dot(own, { x, y: key, r: own.length > 60 ? 1.2 : 3, fill: colour, tip: true }),
  ];
}

function Names({ series }: { series: Series[] }) {
  return (
    <p class="legend">
      {series.map(({ key, name, colour, dash }) => (
        <span key={key}>
          <svg width="26" height="8" aria-hidden="true">
            <path
              d="M0 4H26"
              style={{ stroke: colour, strokeWidth: 2.5, strokeDasharray: dash ?? "none" }}
            />
          </svg>{" "}
          {name}
        </span>
      ))}
    </p>
  );
}

interface HeatProps {
  title: string;
  cells: { rule: string; iteration: number; matches: number }[];
  order: string[];
}

/** Rules by iterations: the darker, the more matches. */
export function Heat({ title, cells, order }: HeatProps) {
  return (
    <Figure
      title={title}
      draw={(width) =>
        Plot.plot({
          width,
          height: 60 + 16 * order.length,
          marginLeft: Math.min(260, width * 0.45),
          padding: 0.06,
          x: { label: "iteration", type: "band", tickFormat: "d", ticks: spread(cells, width) },
          y: { label: null, domain: order },
          color: {
            type: "log",
            range: ["var(--cold)", "var(--hot)"],
            interpolate: mixed,
            label: "matches",
          },
          marks: [Plot.cell(cells, { x: "iteration", y: "rule", fill: "matches", tip: true })],
        })
      }
    />
  );
}

/** Iterations that have room for their numbers. */
function spread(cells: { iteration: number }[], width: number): number[] {
  const all = [...new Set(cells.map((cell) => cell.iteration))].sort((a, b) => a - b);
  const step = Math.ceil((26 * all.length) / Math.max(width * 0.55, 1));
  return all.filter((_, place) => place % step === 0);
}

/** A colour between two, mixed by the browser, so that it follows the theme. */
function mixed(): (share: number) => string {
  return (share) =>
    `color-mix(in oklab, var(--hot) ${Math.round(15 + 85 * share)}%, var(--ground))`;
}

interface BarsProps {
  title: string;
  rows: Row[];
  value: string;
  label: string;
  unit: string;
}

/** Bars beside their names, the longest first. */
export function Bars({ title, rows, value, label, unit }: BarsProps) {
  return (
    <Figure
      title={title}
      draw={(width) =>
        Plot.plot({
          width,
          height: 50 + 22 * rows.length,
          marginLeft: Math.min(240, width * 0.42),
          x: { label: unit, grid: true, nice: true },
          y: { label: null, domain: rows.map((row) => String(row[label])) },
          marks: [
            Plot.barX(rows, { x: value, y: label, fill: "var(--new-line)", tip: true }),
            Plot.ruleX([0]),
          ],
        })
      }
    />
  );
}
