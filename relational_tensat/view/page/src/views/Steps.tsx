/** The steps: the way from the original to the optimized graph as a film. */
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Film as FilmData, FilmStep, PageData, FilmAndSearch } from "../data";
import { frameAfter, saved } from "../film";
import { bytes, count, percent, time } from "../format";
import { Compared } from "../graph/Compared";
import type { Colour } from "../graph/Drawing";
import { Check, Choice } from "../parts";
import { Lines, single } from "../plots";
import type { Source } from "../source";

/** Edges around what a step touches that are drawn with it. */
const AROUND = 2;
/** Of larger e-graphs, the steps are found only if that is wanted. */
const MOST_UNASKED = 100_000;
/** What finding them takes: as measured on 20,000. */
const BYTES_PER_ENODE = 6_000;
/** Milliseconds that each step stands while the film runs. */
const PACE_MS = 1400;

interface Props {
  data: PageData;
  source: Source;
  number: number;
  onFilm: (answer: FilmAndSearch) => void;
}

/** The film, which is asked for first where the page does not have it. */
export function Steps({ data, source, number, onFilm }: Props) {
  const { film } = data;
  const { e_nodes } = data.summary;
  const [error, setError] = useState("");
  const [isWanted, setWanted] = useState(e_nodes <= MOST_UNASKED);
  useEffect(() => {
    if (film !== null || data.no_film || !isWanted) return;
    source.film().then(onFilm, (reason: unknown) => {
      setError(reason instanceof Error ? reason.message : String(reason));
    });
  }, [film, isWanted]);
  if (data.no_film || error) {
    return (
      <p class="note">
        The way from the original graph to the optimized one was not found: {data.no_film || error}.
        How both were compared, the run's report states.
      </p>
    );
  }
  if (film !== null) return <Film data={data} film={film} number={number} />;
  if (!isWanted) {
    return (
      <div class="note">
        <p>
          Finding the steps takes the whole e-graph into memory: about{" "}
          {bytes(BYTES_PER_ENODE * e_nodes)} for its {count(e_nodes)} e-nodes, and some minutes. The
          other views answer meanwhile.
        </p>
        <button type="button" onClick={() => setWanted(true)}>
          find the steps
        </button>
      </div>
    );
  }
  return <p role="status">The steps are being found: for a large e-graph, that takes a while…</p>;
}

function Film({ data, film, number }: { data: PageData; film: FilmData; number: number }) {
  const last = film.steps.length;
  const at = Math.min(Math.max(number, 1), last);
  const step = film.steps[at - 1];
  const [isPlaying, setPlaying] = useState(false);
  useArrows(at, last, () => setPlaying((playing) => !playing));
  useEffect(() => {
    if (!isPlaying) return undefined;
    const timer = setTimeout(() => (at < last ? goTo(at + 1) : setPlaying(false)), PACE_MS);
    return () => clearTimeout(timer);
  }, [isPlaying, at, last]);
  if (step === undefined) {
    return <p>No step: the extracted graph is the original one.</p>;
  }
  return (
    <article class="film">
      <Player at={at} last={last} isPlaying={isPlaying} onPlay={() => setPlaying(!isPlaying)} />
      <div class="two">
        <div>
          <About step={step} film={film} />
          <Pictures data={data} film={film} at={at} />
        </div>
        <Chain film={film} at={at} />
      </div>
    </article>
  );
}

function goTo(step: number): void {
  location.hash = `step=${step}`;
}

/** Left and right, home and end, and the space bar. */
function useArrows(at: number, last: number, play: () => void): void {
  useEffect(() => {
    const follow = (event: KeyboardEvent) => {
      if (/^(INPUT|TEXTAREA|SELECT|BUTTON)$/.test((event.target as Element).tagName)) return;
      const goal = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 1, End: last }[event.key];
      if (goal !== undefined && goal >= 1 && goal <= last) goTo(goal);
      if (event.key === " ") play();
      if (goal !== undefined || event.key === " ") event.preventDefault();
    };
    addEventListener("keydown", follow);
    return () => removeEventListener("keydown", follow);
  }, [at, last, play]);
}

interface PlayerProps {
  at: number;
  last: number;
  isPlaying: boolean;
  onPlay: () => void;
}

function Player({ at, last, isPlaying, onPlay }: PlayerProps) {
  return (
    <div class="toolbar player">
      <div class="choice">
        <button type="button" aria-label="first step" disabled={at === 1} onClick={() => goTo(1)}>
          |◀
        </button>
        <button
          type="button"
          aria-label="step before"
          disabled={at === 1}
          onClick={() => goTo(at - 1)}
        >
          ◀
        </button>
        <button type="button" aria-label={isPlaying ? "stop" : "play"} onClick={onPlay}>
          {isPlaying ? "stop" : "play"}
        </button>
        <button
          type="button"
          aria-label="next step"
          disabled={at === last}
          onClick={() => goTo(at + 1)}
        >
          ▶
        </button>
        <button
          type="button"
          aria-label="last step"
          disabled={at === last}
          onClick={() => goTo(last)}
        >
          ▶|
        </button>
      </div>
      <input
        type="range"
        aria-label="step"
        min={1}
        max={last}
        value={at}
        onInput={(event) => goTo(Number(event.currentTarget.value))}
      />
      <span>
        step {at} of {last}
      </span>
      <span class="hint">← → move, space plays; the address of this page names the step.</span>
    </div>
  );
}

function About({ step, film }: { step: FilmStep; film: FilmData }) {
  const gain = saved(film, step);
  const before = step.cost_us + gain;
  return (
    <section class="about">
      <h2>
        {step.number}. {step.rule}
      </h2>
      <p class="law">
        {step.law}
        {step.backward ? " (read from right to left)" : ""}
      </p>
      <dl class="facts">
        <dt>where</dt>
        <dd>{step.places.join(" and ")}</dd>
        <dt>operators</dt>
        <dd>
          {step.found.join(", ") || "a value"} → {step.built.join(", ") || "an operand"}
        </dd>
        <dt>cost</dt>
        <dd>
          {time(before)} → {time(step.cost_us)}{" "}
          {Math.abs(gain) < 1e-9 * before ? (
            "(the same: it prepares what follows)"
          ) : (
            <strong class={gain > 0 ? "gain" : "loss"}>
              {gain > 0 ? "−" : "+"}
              {time(Math.abs(gain))}, {percent(Math.abs(gain) / before)}
            </strong>
          )}
        </dd>
        <dt>condition</dt>
        <dd>
          {step.conditions.length === 0
            ? "none"
            : step.conditions.map(({ text, values }) => (
                <div key={text}>
                  <code>{text}</code> {values ? `with ${values}` : ""}
                </div>
              ))}
        </dd>
        <dt>the rule</dt>
        <dd>{step.evidence}</dd>
        <dt>this step</dt>
        <dd>
          checked to be one application of its rule, with nothing else changed
          {step.check ? `; ${step.check}` : ""}
        </dd>
      </dl>
      <details>
        <summary>the rule as its file writes it</summary>
        <pre>{step.text}</pre>
      </details>
    </section>
  );
}

/** The graph before and after a step, around what it touches. */
function Pictures({ data, film, at }: { data: PageData; film: FilmData; at: number }) {
  const [whole, setWhole] = useState(false);
  const [colour, setColour] = useState<Colour>("change");
  const before = useMemo(() => frameAfter(film, at - 1), [film, at]);
  const after = useMemo(() => frameAfter(film, at), [film, at]);
  const [constants, setConstants] = useState(false);
  // A step among weights only would not be seen without them.
  const isAmongConstants =
    film.steps[at - 1]?.change.put.every((value) => value.is_constant) ?? false;
  const choices = useMemo(
    () => ({ constants: constants || isAmongConstants, folds: false, radius: whole ? 0 : AROUND }),
    [constants, isAmongConstants, whole],
  );
  return (
    <>
      <div class="toolbar">
        <Choice
          label="colour"
          value={colour}
          options={{ change: "what changed", cost: "cost" }}
          onChange={setColour}
        />
        <Check label="the whole graph" value={whole} onChange={setWhole} />
        <Check label="weights and constants" value={constants} onChange={setConstants} />
      </div>
      <Compared
        data={data}
        before={before}
        after={after}
        beforeLabel="before the step"
        afterLabel="after it"
        choices={choices}
        colour={colour}
        source={0}
        sides={["before", "after"]}
        zoom="fit"
      />
    </>
  );
}

function Chain({ film, at }: { film: FilmData; at: number }) {
  const costs = useMemo(
    () => [
      { step: 0, us: film.start_us },
      ...film.steps.map((step) => ({ step: step.number, us: step.cost_us })),
    ],
    [film],
  );
  return (
    <aside class="chain">
      <Lines
        title="cost after each step"
        points={costs}
        x="step"
        series={single("us")}
        unit="µs"
        zero={false}
        mark={at}
        height={130}
      />
      <ol>
        {film.steps.map((step) => {
          const gain = saved(film, step);
          return (
            <li key={step.number} value={step.number}>
              <a
                href={`#step=${step.number}`}
                aria-current={step.number === at ? "step" : undefined}
              >
                {step.rule}
              </a>{" "}
              {Math.abs(gain) > 1e-6 ? (
                <span class={gain > 0 ? "gain" : "loss"}>
                  {gain > 0 ? "−" : "+"}
                  {time(Math.abs(gain))}
                </span>
              ) : null}
            </li>
          );
        })}
      </ol>
    </aside>
  );
}
