/** The search: growth, cost and bound, what the rules did, subgraphs, where the time went. */
import { useMemo, useState } from "preact/hooks";
import type { PageData, RuleWork, SearchCourse as SearchData } from "../data";
import { count, plural, time } from "../format";
import type { Source } from "../source";
import { Bars, Heat, Lines, single } from "../plots";
import { Table } from "../table";
import { Tree } from "./Tree";
import { WhyUnused } from "./WhyUnused";
import { Subgraphs } from "./Subgraphs";

const COST = { key: "cost", name: "cheapest graph of the extraction", colour: "var(--new-line)" };
const BOUND = {
  key: "bound",
  name: "no graph of its e-graph costs less",
  colour: "var(--gone-line)",
  dash: "5 3",
};
/** Rules that the heat-map shows; the table has all. */
const MOST_RULES = 30;

export function Search({ data, source }: { data: PageData; source: Source }) {
  const { search } = data;
  return (
    <article>
      <div class="charts">
        <Costs search={search} original_us={data.summary.before_us} />
        <Growth search={search} />
      </div>
      <Missing search={search} />
      {search.subgraphs.length > 0 ? <Subgraphs subgraphs={search.subgraphs} /> : null}
      {search.tree !== null && search.tree.decisions.length > 0 ? (
        <Tree tree={search.tree} />
      ) : null}
      <Rules search={search} source={source} hasFilm={data.film !== null} />
      <Times search={search} />
    </article>
  );
}

function Costs({ search, original_us }: { search: SearchData; original_us: number }) {
  const overTime = useMemo(
    () => [
      { seconds: 0, cost: original_us, bound: null },
      ...search.events.map((event) => ({
        seconds: event.seconds,
        cost: event.incumbent_us,
        bound: event.bound_us || null,
      })),
    ],
    [search, original_us],
  );
  const overNodes = useMemo(
    () =>
      search.extractions.map((entry) => ({
        nodes: entry.e_nodes,
        cost: entry.cost_us,
        bound: entry.bound_us || null,
      })),
    [search],
  );
  return (
    <>
      {overTime.length > 1 ? (
        <section>
          <Lines
            title="Cost and bound over time"
            points={overTime}
            x="seconds"
            xLabel="seconds since the run began"
            series={[COST, BOUND]}
            unit="µs"
            zero={false}
          />
        </section>
      ) : null}
      {overNodes.length > 1 ? (
        <section>
          <Lines
            title="Cost and bound over e-nodes"
            points={overNodes}
            x="nodes"
            xLabel="e-nodes"
            series={[COST, BOUND]}
            unit="µs"
            zero={false}
          />
        </section>
      ) : null}
    </>
  );
}

/** What no chart can show, in words. */
function Missing({ search }: { search: SearchData }) {
  const { iterations, events, extractions } = search;
  const [only] = extractions;
  return (
    <>
      {events.length === 0 ? <p>The extractor reported nothing on its way.</p> : null}
      {iterations.length === 0 ? <p>No iteration: nothing was explored.</p> : null}
      {only !== undefined && extractions.length === 1 ? (
        <p class="hint">
          There was one extraction, from {count(only.e_nodes)} e-nodes: {time(only.cost_us)}. With{" "}
          <code>--set extract-every=1</code>, there is one after each iteration.
        </p>
      ) : null}
    </>
  );
}

function Growth({ search }: { search: SearchData }) {
  const points = search.iterations.map((item) => ({
    iteration: item.iteration,
    nodes: item.e_nodes,
    classes: item.e_classes,
    seconds: item.seconds,
  }));
  if (points.length === 0) return null;
  return (
    <>
      <section>
        <Lines
          title="Growth per iteration"
          points={points}
          x="iteration"
          xLabel="iteration"
          series={[
            { key: "nodes", name: "e-nodes", colour: "var(--new-line)" },
            { key: "classes", name: "e-classes", colour: "var(--gone-line)", dash: "5 3" },
          ]}
          unit="count"
        />
      </section>
      <section>
        <Lines
          title="Seconds per iteration"
          points={points}
          x="iteration"
          series={single("seconds")}
          unit="s"
        />
      </section>
    </>
  );
}

type Order = "saved_us" | "matches" | "unions" | "e_nodes" | "extracted" | "seconds";
const ORDERS: Record<Order, string> = {
  saved_us: "saved by its steps",
  matches: "matches",
  unions: "unions",
  e_nodes: "e-nodes made",
  extracted: "in the result",
  seconds: "seconds",
};

interface RulesProps {
  search: SearchData;
  source: Source;
  /** Whether it is known what the rules' steps saved. */
  hasFilm: boolean;
}

function Rules({ search, source, hasFilm }: RulesProps) {
  const [words, setWords] = useState("");
  const [open, setOpen] = useState("");
  const [order, setOrder] = useState<Order>(hasFilm ? "saved_us" : "extracted");
  const [all, setAll] = useState(false);
  const rules = useMemo(
    () => [...search.rules].sort((a, b) => b[order] - a[order] || b.matches - a.matches),
    [search, order],
  );
  const active = rules.filter((rule) => rule.matches > 0 || rule.steps.length > 0);
  const wanted = words.toLowerCase();
  const shown = (all || wanted ? rules : active).filter(
    (rule) => rule.name.includes(wanted) || rule.law.toLowerCase().includes(wanted),
  );
  const busiest = useMemo(
    () =>
      [...search.rules]
        .sort((a, b) => b.matches - a.matches)
        .slice(0, MOST_RULES)
        .filter((r) => r.matches > 0),
    [search],
  );
  return (
    <section>
      <h2>Rules</h2>
      <p class="hint">
        {count(active.length)} of {plural(search.rules.length, "rule")} matched something. Click one
        to see its law, and why it was not used.{" "}
        <button type="button" aria-pressed={all} onClick={() => setAll(!all)}>
          {all ? "only those" : "show all"}
        </button>
      </p>
      <input
        type="search"
        aria-label="find a rule"
        placeholder="find a rule"
        value={words}
        onInput={(event) => {
          setWords(event.currentTarget.value);
        }}
      />
      <div class="scroll">
        <table class="rules">
          <thead>
            <tr>
              <th>rule</th>
              {(Object.keys(ORDERS) as Order[]).map((key) => (
                <th key={key} class="number" aria-sort={key === order ? "descending" : "none"}>
                  <button type="button" onClick={() => setOrder(key)}>
                    {ORDERS[key]}
                    {key === order ? " ▾" : ""}
                  </button>
                </th>
              ))}
              <th>steps</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((rule) => (
              <Rule
                key={rule.name}
                rule={rule}
                source={source}
                isOpen={rule.name === open}
                onOpen={() => {
                  setOpen(rule.name === open ? "" : rule.name);
                }}
              />
            ))}
          </tbody>
        </table>
      </div>
      {busiest.length > 0 ? (
        <Heat
          title="Matches of the busiest rules by iteration"
          order={busiest.map((rule) => rule.name)}
          cells={busiest.flatMap((rule) =>
            rule.by_iteration.map(([iteration, matches]) => ({
              rule: rule.name,
              iteration,
              matches,
            })),
          )}
        />
      ) : null}
    </section>
  );
}

interface RuleProps {
  rule: RuleWork;
  isOpen: boolean;
  onOpen: () => void;
  source: Source;
}

function Rule({ rule, isOpen, onOpen, source }: RuleProps) {
  return (
    <>
      <Figures rule={rule} isOpen={isOpen} onOpen={onOpen} />
      {isOpen ? (
        <tr class="opened">
          <td colSpan={8}>
            <p class="law">{rule.law}</p>
            {rule.steps.length === 0 ? (
              <WhyUnused rule={rule.name} matches={rule.matches} source={source} />
            ) : (
              <p>It made {plural(rule.steps.length, "step")} of the film.</p>
            )}
          </td>
        </tr>
      ) : null}
    </>
  );
}

function Figures({ rule, isOpen, onOpen }: Omit<RuleProps, "source">) {
  const first = rule.steps.slice(0, 6);
  return (
    <tr>
      <td>
        <button type="button" class="plain" aria-expanded={isOpen} onClick={onOpen}>
          {rule.name}
        </button>
      </td>
      <td class="number">{rule.steps.length > 0 ? signed(rule.saved_us) : ""}</td>
      <td class="number">{count(rule.matches)}</td>
      <td class="number">{count(rule.unions)}</td>
      <td class="number">{count(rule.e_nodes)}</td>
      <td class="number">{count(rule.extracted)}</td>
      <td class="number">{rule.seconds.toFixed(3)}</td>
      <td>
        {first.map((step) => (
          <a key={step} href={`#step=${step}`}>
            {step}{" "}
          </a>
        ))}
        {rule.steps.length > first.length ? `… ${rule.steps.length} in all` : ""}
      </td>
    </tr>
  );
}

function signed(us: number): string {
  if (Math.abs(us) < 1e-4) return "0 µs";
  return us > 0 ? time(us) : `−${time(-us)}`;
}

function Times({ search }: { search: SearchData }) {
  const phases = useMemo(() => {
    const totals = new Map<string, number>();
    for (const share of search.time)
      totals.set(share.phase, (totals.get(share.phase) ?? 0) + share.seconds);
    return [...totals]
      .map(([phase, spent]) => ({ phase, seconds: spent }))
      .filter((row) => row.seconds > 0)
      .sort((a, b) => b.seconds - a.seconds);
  }, [search]);
  if (phases.length === 0) return null;
  return (
    <section>
      <h2>Where the time went</h2>
      <Bars
        title="Seconds by phase, in statements and in Python"
        rows={phases}
        label="phase"
        value="seconds"
        unit="s"
      />
      <details>
        <summary>the longest statements</summary>
        <Table
          columns={["phase", "statement", "runs", "seconds"]}
          rows={search.time
            .slice(0, 25)
            .map((share) => [
              share.phase,
              share.statement || "(not SQL)",
              share.runs,
              share.seconds.toFixed(4),
            ])}
        />
      </details>
    </section>
  );
}
