/** The change: original and optimized graph side by side. */
import { useMemo, useState } from "preact/hooks";
import type { GraphFrame as Frame, PageData } from "../data";
import { Compared } from "../graph/Compared";
import type { Side } from "../graph/comparison";
import type { Colour } from "../graph/Drawing";
import { form } from "../graph/visible";
import { Check, Choice, Zoom } from "../parts";

type Shown = "both" | Side;

export function Change({ data, isNarrow }: { data: PageData; isNarrow: boolean }) {
  const [chosen, setShown] = useState<Shown | null>(null);
  const shown = chosen ?? (isNarrow ? "after" : "both");
  const [colour, setColour] = useState<Colour>("change");
  const [source, setSource] = useState(0);
  const [constants, setConstants] = useState(false);
  const [folds, setFolds] = useState(true);
  const [zoom, setZoom] = useState<number | "fit">("fit");
  const [words, setWords] = useState("");
  const before = data.original;
  const after = data.result;
  const optimized = data.summary.kept_original ? "extracted, not written" : "optimized";
  const sources = data.summary.cost_sources;
  const choices = useMemo(() => ({ constants, folds, radius: 0 }), [constants, folds]);
  return (
    <article>
      <div class="toolbar">
        <Choice
          label="graphs"
          value={shown}
          options={{ both: "both", before: "original", after: optimized }}
          onChange={setShown}
        />
        <Choice
          label="colour"
          value={colour}
          options={{ change: "what changed", cost: "cost" }}
          onChange={setColour}
        />
        {sources.length > 1 ? (
          <Choice
            label="costs"
            value={String(source)}
            options={Object.fromEntries(sources.map((name, n) => [String(n), name]))}
            onChange={(value) => setSource(Number(value))}
          />
        ) : null}
        <Check label="fold what recurs" value={folds} onChange={setFolds} />
        <Check label="weights and constants" value={constants} onChange={setConstants} />
        <Zoom value={zoom} onChange={setZoom} />
        <input
          type="search"
          aria-label="find an operator or a value"
          placeholder="find: MatMul, a value's name"
          value={words}
          onInput={(event) => {
            setWords(event.currentTarget.value);
          }}
        />
      </div>
      <Legend colour={colour} />
      <Compared
        before={before}
        after={after}
        beforeLabel="original"
        afterLabel={optimized}
        data={data}
        choices={choices}
        colour={colour}
        source={source}
        sides={shown === "both" ? ["before", "after"] : [shown]}
        zoom={zoom}
        words={words}
      />
      <Operators data={data} before={before} after={after} />
    </article>
  );
}

function Legend({ colour }: { colour: Colour }) {
  return (
    <p class="legend">
      {colour === "change" ? (
        <>
          <span class="key equal">equal</span>
          <span class="key changed">≠ computed otherwise</span>
          <span class="key gone">− gone</span>
          <span class="key new">+ new</span>
        </>
      ) : (
        <span class="key heat">cheap → costly</span>
      )}
      <span class="hint">The bar in a box is its share of the most expensive operator's cost.</span>
    </p>
  );
}

/** How often each operator occurs, before and after: in the files, if the run says so. */
function Operators({ data, before, after }: { data: PageData; before: Frame; after: Frame }) {
  const { operators: said, terms } = data.summary;
  const rows = useMemo(() => {
    if (said.length > 0) return said.map(([name, old, now]) => ({ name, old, now }));
    const [old, now] = [before, after].map((frame) => operators(frame, data));
    const names = new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])]);
    return [...names].map((name) => ({ name, old: old?.get(name) ?? 0, now: now?.get(name) ?? 0 }));
  }, [data, before, after]);
  return (
    <details class="operators" open>
      <summary>
        {terms === "ONNX" ? "Operators in the files, by ONNX's names" : "Operators at inference"}
      </summary>
      <table>
        <thead>
          <tr>
            <th>operator</th>
            <th class="number">before</th>
            <th class="number">after</th>
            <th class="number">change</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ name, old, now }) => (
            <tr key={name} class={old === now ? "same" : ""}>
              <td>{name}</td>
              <td class="number">{old}</td>
              <td class="number">{now}</td>
              <td class="number">
                {old === now ? "" : `${now > old ? "+" : "−"}${Math.abs(now - old)}`}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function operators(frame: Frame, data: PageData): Map<string, number> {
  const counts = new Map<string, number>();
  for (const value of frame.values) {
    const { op, is_structure } = form(value, data.forms);
    if (!value.is_constant && !is_structure) counts.set(op, (counts.get(op) ?? 0) + 1);
  }
  return counts;
}
