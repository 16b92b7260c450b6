/** Kernels: what of the model became one kernel, its three levels, beside the operators that it replaces. */
import { useMemo, useState } from "preact/hooks";
import type { FusedUse, PageData } from "../data";
import { bytes, plural, shape, short, time } from "../format";
import { layOut } from "../graph/layout";
import { KernelFacts, leastBytes } from "../kernels/KernelFacts";
import { MuGraphDrawing, MuLegend } from "../kernels/MuGraphDrawing";
import { Table } from "../table";

export function Kernels({ data }: { data: PageData }) {
  const [key, setKey] = useState(data.kernels[0]?.key ?? "");
  const kernel = data.kernels.find((one) => one.key === key);
  return (
    <article class="two wide-right">
      <section>
        <h2>Kernels of this model</h2>
        <ul class="examples">
          {data.kernels.map((one) => (
            <li key={one.key}>
              <button type="button" aria-pressed={one.key === key} onClick={() => setKey(one.key)}>
                {short(one.replaced.map((part) => part.op).join(" · "), 40)}
                <span class="hint">
                  {" "}
                  {one.chosen_uses > 0 ? `✓ ${one.chosen_uses} × in the result` : "not chosen"}
                </span>
              </button>
            </li>
          ))}
        </ul>
      </section>
      {kernel === undefined ? null : <One kernel={kernel} data={data} />}
    </article>
  );
}

function One({ kernel, data }: { kernel: FusedUse; data: PageData }) {
  const source = data.summary.cost_sources[0] ?? "";
  const costs = kernel.replaced.map((part) => part.cost_us);
  const replaced_us = costs.every((us) => us !== null)
    ? costs.reduce<number>((sum, us) => sum + (us ?? 0), 0)
    : null;
  const before = kernel.replaced.reduce((sum, part) => sum + part.moved_bytes, 0);
  const after = leastBytes(kernel.drawing.kernels);
  return (
    <section class="kernel" data-kernel={kernel.key}>
      <h2>
        {plural(kernel.replaced.length, "operator")} as one kernel{" "}
        <span class="hint">{kernel.key}</span>
      </h2>
      <dl class="facts">
        <dt>bytes moved</dt>
        <dd>
          {bytes(before)} → {bytes(after)}
        </dd>
        <dt>cost</dt>
        <dd>
          {time(replaced_us)} → {time(kernel.cost_us)}, {source}
        </dd>
        <dt>where</dt>
        <dd>
          {plural(kernel.uses, "e-node")}, {kernel.chosen_uses} of the result;{" "}
          <a href={`#class=${kernel.eclass}`}>e-class {kernel.eclass}</a>
        </dd>
      </dl>
      <div class="beside">
        <div>
          <h3>It replaces</h3>
          <ReplacedGraph kernel={kernel} />
          <Table
            columns={["operator", "result", "cost", "bytes moved"]}
            rows={kernel.replaced.map((part) => [
              part.op,
              shape(part.type),
              time(part.cost_us),
              bytes(part.moved_bytes),
            ])}
          />
        </div>
        <div>
          <h3>The kernel, of {namesOf(kernel)}</h3>
          <MuGraphDrawing drawing={kernel.drawing} />
        </div>
      </div>
      <MuLegend />
      <KernelFacts drawing={kernel.drawing} />
      <details>
        <summary>as text</summary>
        <pre>{kernel.drawing.text}</pre>
      </details>
    </section>
  );
}

/** What the model calls the tensors that a kernel takes. */
function namesOf({ drawing, operands }: FusedUse): string {
  const inputs = drawing.graph.filter((node) => node.kind === "tensor" && node.inputs.length === 0);
  return inputs.map((node, n) => `${node.title} = ${short(operands[n] ?? "", 30)}`).join(", ");
}

/** The operators that a kernel replaces, from what it takes. */
function ReplacedGraph({ kernel }: { kernel: FusedUse }) {
  const layout = useMemo(() => {
    const boxes = [
      ...kernel.operands.map((name, n) => ({ key: String(n), text: short(name, 22) })),
      ...kernel.replaced.map((part) => ({ key: part.id, text: part.op })),
    ].map(({ key, text }) => ({ key, text, width: 26 + 7.2 * text.length, height: 30 }));
    const known = new Set(boxes.map((box) => box.key));
    const edges = kernel.replaced.flatMap((part) =>
      part.inputs.filter((id) => known.has(id)).map((from) => ({ from, to: part.id })),
    );
    return { boxes, ...layOut(boxes, edges) };
  }, [kernel]);
  return (
    <div class="panel">
      <svg
        class="drawing"
        role="img"
        aria-label="the operators that it replaces"
        width={layout.width}
        height={layout.height}
        viewBox={`0 0 ${layout.width} ${layout.height}`}
      >
        {layout.edges.map((edge) => (
          <path key={`${edge.from} ${edge.to}`} class="edge" d={edge.path} />
        ))}
        {layout.boxes.map(({ key, text, width, height }) => {
          const place = layout.places.get(key);
          const isOperand = Number(key) < kernel.operands.length;
          return place === undefined ? null : (
            <g
              key={key}
              class={`node by-change ${isOperand ? "leaf equal" : "operator gone"}`}
              transform={`translate(${place.x - width / 2},${place.y - height / 2})`}
            >
              <rect width={width} height={height} rx={isOperand ? height / 2 : 5} />
              <text x={width / 2} y={height / 2 + 4}>
                {text}
              </text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
