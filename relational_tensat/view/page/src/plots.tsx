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

interface LineProps {
  title: string;
  points: Row[];
  x: string;
  y: string;
  unit: string;
  height?: number;
  /** A place on the x axis that is marked. */
  mark?: number;
}

/** A line with its points. */
export function Line({ title, points, x, y, unit, height = 220, mark }: LineProps) {
  return (
    <Figure
      title={title}
      draw={(width) =>
        Plot.plot({
          width,
          height,
          marginLeft: 56,
          grid: true,
          x: { label: x, ...whole(points, x) },
          y: { label: unit, nice: true },
          marks: [
            mark === undefined
              ? null
              : Plot.ruleX([mark], { stroke: "currentColor", strokeDasharray: "3 3" }),
            Plot.lineY(points, {
              x,
              y,
              stroke: "var(--new-line)",
              strokeWidth: 2,
              curve: "step-after",
            }),
            Plot.dot(points, {
              x,
              y,
              r: points.length > 60 ? 0 : 2.5,
              fill: "var(--new-line)",
              tip: true,
            }),
          ],
        })
      }
    />
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

interface BandProps {
  title: string;
  points: Row[];
  x: string;
  xLabel: string;
  series: { key: string; name: string; colour: string; dash?: string }[];
  unit: string;
}

/** Several lines over one axis, each named in a legend and told apart by its dashes, too. */
export function Lines({ title, points, x, xLabel, series, unit }: BandProps) {
  return (
    <>
      <Figure
        title={title}
        draw={(width) =>
          Plot.plot({
            width,
            height: 240,
            marginLeft: 60,
            grid: true,
            x: { label: xLabel, ...whole(points, x) },
            y: { label: unit, nice: true, zero: true },
            marks: series.flatMap(({ key, colour, dash }) => {
              const own = points.filter((point) => point[key] !== null && point[key] !== undefined);
              return [
                Plot.lineY(own, {
                  x,
                  y: key,
                  stroke: colour,
                  strokeWidth: 2,
                  strokeDasharray: dash ?? "none",
                  curve: "step-after",
                }),
                Plot.dot(own, { x, y: key, r: own.length > 60 ? 1.2 : 3, fill: colour, tip: true }),
              ];
            }),
          })
        }
      />
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
    </>
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
          x: { label: "iteration", type: "band", tickFormat: "d" },
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
