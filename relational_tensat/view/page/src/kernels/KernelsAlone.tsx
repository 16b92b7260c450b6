/** A page of μGraphs alone, as `kernels show --html` writes it. */
import type { KernelPage } from "../data";
import { plural } from "../format";
import { Theme } from "../parts";
import { KernelFacts } from "./KernelFacts";
import { MuGraphDrawing, MuLegend } from "./MuGraphDrawing";

export function KernelsAlone({ page }: { page: KernelPage }) {
  return (
    <>
      <header>
        <h1>{page.title}</h1>
        <nav>
          <Theme />
        </nav>
      </header>
      <main>
        {page.drawings.map((drawing, n) => (
          <section key={n} class="kernel">
            <h2>
              {drawing.name} <span class="hint">{plural(drawing.kernels.length, "kernel")}</span>
            </h2>
            <MuLegend />
            <MuGraphDrawing drawing={drawing} />
            <KernelFacts drawing={drawing} />
            <details>
              <summary>as text</summary>
              <pre>{drawing.text}</pre>
            </details>
          </section>
        ))}
      </main>
    </>
  );
}
