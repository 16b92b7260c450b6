/** Kernels that onnxruntime runs in the written file: each with its time beside what it replaces, and its C. */
import type { RunningUse } from "../data";
import { plural, time } from "../format";

export function RunningKernels({ kernels }: { kernels: RunningUse[] }) {
  const sorted = [...kernels].sort((one, other) => gain(other) - gain(one));
  return (
    <article>
      <section class="running">
        <h2>Kernels that the file runs</h2>
        <p class="hint">
          Each was timed in onnxruntime on this machine, beside what that makes of the same
          operators. A session&apos;s own time is in both.
        </p>
        {sorted.map((kernel) => (
          <details key={kernel.name} data-running={kernel.name}>
            <summary>
              {kernel.operators.join(" · ")}: {time(kernel.plain_us)} → {time(kernel.kernel_us)},{" "}
              {plural(kernel.places, "call")} <span class="hint">{kernel.name}</span>
            </summary>
            <pre>{kernel.code}</pre>
          </details>
        ))}
      </section>
    </article>
  );
}

/** What all calls of a kernel save. */
function gain(kernel: RunningUse): number {
  return kernel.places * (kernel.plain_us - kernel.kernel_us);
}
