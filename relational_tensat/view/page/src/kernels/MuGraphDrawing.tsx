/** The three levels of a μGraph as an SVG: tensors of the device, kernels with their blocks, threads. */
import { useMemo } from "preact/hooks";
import type { MuDrawing } from "../data";
import "./kernels.css";
import { arranged, LINE, type MuBox, type MuLevel } from "./arranged";

export function MuGraphDrawing({ drawing }: { drawing: MuDrawing }) {
  const picture = useMemo(() => arranged(drawing), [drawing]);
  return (
    <div class="panel mugraph">
      <svg
        class="drawing"
        role="img"
        aria-label={`the μGraph ${drawing.name}`}
        width={picture.width}
        height={picture.height}
        viewBox={`0 0 ${picture.width} ${picture.height}`}
      >
        <Level level={picture} />
      </svg>
    </div>
  );
}

function Level({ level }: { level: MuLevel }) {
  const { loop } = level;
  return (
    <>
      {loop === null ? null : (
        <g class="loop">
          <rect x={loop.x} y={loop.y} width={loop.width} height={loop.height} rx={8} />
          <text x={loop.x + 8} y={loop.y + 14}>{`loop: ${loop.times} times`}</text>
        </g>
      )}
      {level.edges.map((edge) => (
        <path key={`${edge.from} ${edge.to}`} class="edge" d={edge.path} />
      ))}
      {level.boxes.map((box) => (
        <Box key={box.node.id} box={box} />
      ))}
    </>
  );
}

function Box({ box }: { box: MuBox }) {
  const { node, width, height, lines, inner } = box;
  const isRound = node.kind === "tensor" || node.kind === "load" || node.kind === "store";
  return (
    <g class={`mu ${node.kind} ${node.stage}`} transform={`translate(${box.x},${box.y})`}>
      <rect width={width} height={height} rx={isRound ? 12 : 5} />
      {lines.map((line, n) => (
        <text key={n} class={n === 0 ? "title" : ""} x={width / 2} y={LINE * (n + 1) + 1}>
          {line}
        </text>
      ))}
      {inner === null ? null : (
        <g transform={`translate(${(width - inner.width) / 2},${lines.length * LINE + 10})`}>
          <Level level={inner} />
        </g>
      )}
      <title>{[node.title, ...node.about, node.dims].filter(Boolean).join(", ")}</title>
    </g>
  );
}

/** What the kinds of boxes mean. */
export function MuLegend() {
  return (
    <p class="legend">
      <span class="key mu-tensor">device memory</span>
      <span class="key mu-kernel">kernel</span>
      <span class="key mu-load">↓ load, ↑ store</span>
      <span class="key mu-operator">in a block</span>
      <span class="key mu-accumulator">accumulator</span>
      <span class="key mu-thread">in registers</span>
      <span class="hint">x→h: axis x of the grid splits h; φ: all blocks have the same.</span>
    </p>
  );
}
