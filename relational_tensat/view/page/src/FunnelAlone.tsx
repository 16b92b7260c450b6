/** A page of a synthesis of rules alone, as `rules synthesize --html` writes it. */
import type { FunnelPage } from "./data";
import { percent, seconds } from "./format";
import { Theme } from "./parts";
import { Table } from "./table";

export function FunnelAlone({ page }: { page: FunnelPage }) {
  return (
    <>
      <header>
        <h1>{page.title}</h1>
        <nav>
          <Theme />
        </nav>
      </header>
      <main>
        <section>
          <h2>Funnel</h2>
          <Table
            columns={["of what", "number"]}
            rows={page.funnel.map((c) => [c.what, c.number])}
          />
        </section>
        <section>
          <h2>Stages</h2>
          <Table
            columns={["stage", "left over", "CPU time"]}
            rows={page.stages.map((s) => [s.name, s.rows, seconds(s.cpu_s)])}
          />
        </section>
        <section>
          <h2>Laws</h2>
          {page.left_out > 0 && <p class="hint">{page.left_out} more are in the file</p>}
          <Table
            columns={["law", "became", "may save", "of", "note"]}
            rows={page.laws.map((law) => [
              law.law,
              law.status,
              law.gain > 0 ? percent(law.gain) : "",
              law.models.join(", "),
              law.note,
            ])}
          />
        </section>
        <section>
          <h2>Rules</h2>
          {page.rules.map((rule) => (
            <pre key={rule}>{rule}</pre>
          ))}
        </section>
      </main>
    </>
  );
}
