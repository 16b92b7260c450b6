/** Ask: SQL over the run's tables; examples teach the schema. */
import { useRef, useState } from "preact/hooks";
import type { QueryAnswer as Answer, Cell, PageData } from "../data";
import { count } from "../format";
import { Check } from "../parts";
import { Bars } from "../plots";
import type { Source } from "../source";
import { Table } from "../table";

const MOST_BARS = 40;

export function Ask({ data, source }: { data: PageData; source: Source }) {
  const [query, setQuery] = useState(data.examples[0]?.query ?? "");
  const [answer, setAnswer] = useState<Answer | null>(data.examples[0]?.answer ?? null);
  const [error, setError] = useState("");
  const [isRunning, setRunning] = useState(false);
  const asked = useRef(0); // only the last query's answer is shown
  const run = (text: string) => {
    asked.current += 1;
    const number = asked.current;
    const show = (found: Answer | null, reason: string) => {
      if (number !== asked.current) return;
      setAnswer(found);
      setError(reason);
      setRunning(false);
    };
    setQuery(text);
    setRunning(true);
    source.ask(text).then(
      (found) => show(found, ""),
      (reason: unknown) => show(null, reason instanceof Error ? reason.message : String(reason)),
    );
  };
  return (
    <article class="two wide-right">
      <section>
        <h2>Examples</h2>
        <ul class="examples">
          {data.examples.map((example) => (
            <li key={example.title}>
              <button
                type="button"
                aria-pressed={example.query === query}
                onClick={() => {
                  run(example.query);
                }}
              >
                {example.title}
              </button>
            </li>
          ))}
        </ul>
      </section>
      <section>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            run(query);
          }}
        >
          {source.isServed ? (
            <>
              <label>
                SQL
                <textarea
                  rows={8}
                  spellcheck={false}
                  value={query}
                  onInput={(event) => {
                    setQuery(event.currentTarget.value);
                  }}
                  onKeyDown={(event) => {
                    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(query);
                  }}
                />
              </label>
              <button type="submit">run (Ctrl-Enter)</button>{" "}
              <button type="button" disabled={!isRunning} onClick={() => source.stop()}>
                stop
              </button>
              {isRunning ? <span role="status"> running…</span> : null}
            </>
          ) : (
            <>
              <pre class="query">{query}</pre>
              <p class="hint">
                This page carries the examples and their answers. Your own questions:{" "}
                <code>relational-tensat view RUN.duckdb --serve</code>, or{" "}
                <code>relational-tensat sql RUN.duckdb "…"</code>.
              </p>
            </>
          )}
        </form>
        {error ? (
          <p class="note" role="alert">
            {error}
          </p>
        ) : null}
        {answer && !isRunning ? <Shown key={asked.current} answer={answer} /> : null}
      </section>
    </article>
  );
}

function Shown({ answer }: { answer: Answer }) {
  const value = answer.columns.findIndex(
    (_, n) => n > 0 && answer.rows.every((row) => typeof row[n] === "number"),
  );
  const [isPlot, setPlot] = useState(false);
  const label = answer.columns[0] ?? "";
  return (
    <>
      <p class="hint">
        {count(answer.rows.length)} rows{answer.is_cut ? ", and more" : ""}
      </p>
      {value > 0 && answer.rows.length > 1 ? (
        <Check label="as a plot" value={isPlot} onChange={setPlot} />
      ) : null}
      {isPlot ? (
        <Bars
          title={`${answer.columns[value] ?? ""} by ${label}`}
          rows={answer.rows
            .slice(0, MOST_BARS)
            .map((row) => ({ label: text(row[0] ?? null), value: Number(row[value]) }))}
          label="label"
          value="value"
          unit={answer.columns[value] ?? ""}
        />
      ) : (
        <Table
          columns={answer.columns}
          rows={answer.rows.map((row) =>
            row.map((cell) => (typeof cell === "object" ? text(cell) : cell)),
          )}
        />
      )}
    </>
  );
}

function text(cell: Cell): string {
  if (cell === null) return "NULL";
  if (Array.isArray(cell)) return `[${cell.map(text).join(", ")}]`;
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}
