/** The subgraphs of a search: what each was grown from, and how its cheapest graphs fell over time. */
import { useMemo } from "preact/hooks";
import type { SubgraphReport } from "../data";
import { seconds, time } from "../format";
import { Lines } from "../plots";
import { Table } from "../table";

const KINDS = {
  original: "from the original graph",
  chosen: "from the cheapest graph of a subgraph before",
  beside: "from both",
  universe: "all subgraphs together",
  decision: "by the rules that were decided on",
  rollout: "the cheapest subgraph of any rollout",
};

export function Subgraphs({ subgraphs }: { subgraphs: SubgraphReport[] }) {
  const points = useMemo(() => pointsOf(subgraphs), [subgraphs]);
  const kinds = new Set(subgraphs.map((subgraph) => subgraph.kind));
  return (
    <section>
      <h2>Subgraphs</h2>
      <p class="hint">
        All are sets of e-nodes of one e-graph.{" "}
        {Object.entries(KINDS)
          .filter(([kind]) => kinds.has(kind))
          .map(([kind, meaning]) => `${kind}: ${meaning}`)
          .join("; ")}
        .
      </p>
      <div class="charts">
        <section>
          <Lines
            title="Cheapest graph over time"
            points={points}
            x="seconds"
            xLabel="seconds since the search began"
            series={[
              { key: "best", name: "of this subgraph", colour: "var(--gone-line)", dash: "5 3" },
              { key: "least", name: "of all subgraphs so far", colour: "var(--new-line)" },
            ]}
            unit="µs"
            zero={false}
          />
        </section>
        <section>
          <Lines
            title="What each subgraph was grown from, and what it brought"
            points={points}
            x="subgraph"
            series={[
              { key: "seed", name: "grown from", colour: "var(--gone-line)", dash: "5 3" },
              { key: "best", name: "cheapest graph in it", colour: "var(--new-line)" },
            ]}
            unit="µs"
            zero={false}
          />
        </section>
      </div>
      <div class="long">
        <Table
          columns={[
            "subgraph",
            "kind",
            "limit",
            "e-nodes",
            "in all",
            "from",
            "to",
            "stopped",
            "after",
          ]}
          rows={subgraphs.map((subgraph) => [
            subgraph.subgraph,
            subgraph.kind,
            subgraph.node_limit,
            subgraph.e_nodes,
            subgraph.universe,
            time(subgraph.seed_us),
            time(subgraph.best_us),
            subgraph.stop_reason,
            seconds(subgraph.seconds),
          ])}
        />
      </div>
    </section>
  );
}

function pointsOf(subgraphs: SubgraphReport[]) {
  let least = Infinity;
  return subgraphs.map((subgraph) => {
    least = Math.min(least, subgraph.best_us ?? Infinity);
    return {
      subgraph: subgraph.subgraph,
      seconds: subgraph.seconds,
      seed: subgraph.seed_us,
      best: subgraph.best_us,
      least: Number.isFinite(least) ? least : null,
    };
  });
}
