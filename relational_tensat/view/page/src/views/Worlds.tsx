/** The worlds of a search: what each was grown from, and how its cheapest graphs fell over time. */
import { useMemo } from "preact/hooks";
import type { WorldReport } from "../data";
import { seconds, time } from "../format";
import { Lines } from "../plots";
import { Table } from "../table";

const KINDS = {
  original: "from the original graph",
  chosen: "from the cheapest graph of a world before",
  beside: "from both",
  universe: "all worlds together",
  decision: "by the rules that were decided on",
  rollout: "the cheapest world of any rollout",
};

export function Worlds({ worlds }: { worlds: WorldReport[] }) {
  const points = useMemo(() => pointsOf(worlds), [worlds]);
  const kinds = new Set(worlds.map((world) => world.kind));
  return (
    <section>
      <h2>Worlds</h2>
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
              { key: "best", name: "of this world", colour: "var(--gone-line)", dash: "5 3" },
              { key: "least", name: "of all worlds so far", colour: "var(--new-line)" },
            ]}
            unit="µs"
            zero={false}
          />
        </section>
        <section>
          <Lines
            title="What each world was grown from, and what it brought"
            points={points}
            x="world"
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
            "world",
            "kind",
            "limit",
            "e-nodes",
            "in all",
            "from",
            "to",
            "stopped",
            "after",
          ]}
          rows={worlds.map((world) => [
            world.world,
            world.kind,
            world.node_limit,
            world.e_nodes,
            world.universe,
            time(world.seed_us),
            time(world.best_us),
            world.stop_reason,
            seconds(world.seconds),
          ])}
        />
      </div>
    </section>
  );
}

function pointsOf(worlds: WorldReport[]) {
  let least = Infinity;
  return worlds.map((world) => {
    least = Math.min(least, world.best_us ?? Infinity);
    return {
      world: world.world,
      seconds: world.seconds,
      seed: world.seed_us,
      best: world.best_us,
      least: Number.isFinite(least) ? least : null,
    };
  });
}
