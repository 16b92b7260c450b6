/** The search tree: the decisions, and the tree of rules that each was made by. */
import { useMemo, useState } from "preact/hooks";
import type { TreeDecision as Decision, SearchTree, TreeNodeRow as TreeNode } from "../data";
import { count, plural, short, time } from "../format";
import { layOut } from "../graph/layout";
import { Lines } from "../plots";
import { Table } from "../table";

/** Nodes of a tree that are drawn: the most visited. */
const MOST_DRAWN = 150;
const ROOT = "0";

export function Tree({ tree }: { tree: SearchTree }) {
  const [number, setNumber] = useState(tree.decisions[0]?.decision ?? 1);
  const decision = tree.decisions.find((one) => one.decision === number);
  return (
    <section class="tree">
      <h2>The search tree</h2>
      <p class="hint">
        Each decision applied the rule with the best mean return of its rollouts, each of which
        applies rules to a subgraph of its own; costs are those of the cheapest graph by moves.
      </p>
      <Lines
        title="Cheapest graph by decision"
        points={tree.decisions.map((one) => ({ ...one }))}
        x="decision"
        series={[
          { key: "cost_us", name: "real subgraph", colour: "var(--text)" },
          { key: "median_us", name: "median rollout", colour: "var(--gone-line)", dash: "2 3" },
          { key: "least_us", name: "best rollout", colour: "var(--new-line)", dash: "6 3" },
        ]}
        unit="µs"
        zero={false}
      />
      <div class="long">
        <Table
          columns={["decision", "rule", "rollouts", "mean return, ms", "real subgraph", "e-nodes"]}
          rows={tree.decisions.map((one) => [
            one.decision,
            one.rule,
            one.rollouts,
            Number(one.mean_ms.toPrecision(4)),
            time(one.cost_us),
            one.e_nodes,
          ])}
        />
      </div>
      <label class="choose">
        tree of decision{" "}
        <select value={number} onChange={(event) => setNumber(Number(event.currentTarget.value))}>
          {tree.decisions.map((one) => (
            <option key={one.decision} value={one.decision}>
              {one.decision}: {one.rule}
            </option>
          ))}
        </select>
      </label>
      {decision === undefined ? null : <Drawn decision={decision} tree={tree} />}
    </section>
  );
}

function Drawn({ decision, tree }: { decision: Decision; tree: SearchTree }) {
  const nodes = useMemo(() => mostVisited(decision, tree), [decision, tree]);
  const layout = useMemo(() => arranged(nodes), [nodes]);
  return (
    <>
      <p class="hint">
        {nodes.length < decision.nodes
          ? `The ${count(nodes.length)} most visited of its ${count(decision.nodes)} nodes. `
          : `${plural(decision.nodes, "node")}. `}
        ✓: decided on. The thicker an edge, the more rollouts.
      </p>
      <div class="panel neighbourhood">
        <svg
          class="drawing"
          role="img"
          aria-label={`tree of decision ${decision.decision}`}
          width={layout.width}
          height={layout.height}
          viewBox={`0 0 ${layout.width} ${layout.height}`}
        >
          {layout.edges.map((edge) => {
            const visits = nodes.find((node) => String(node.id) === edge.to)?.visits ?? 1;
            const width = 1 + 7 * (visits / decision.rollouts);
            return <path key={edge.to} class="edge" d={edge.path} style={{ strokeWidth: width }} />;
          })}
          {layout.boxes.map(({ key, lines, width, height }) => {
            const place = layout.places.get(key);
            if (place === undefined) return null;
            const node = nodes.find((one) => String(one.id) === key);
            return (
              <g
                key={key}
                class={`class${isDecided(node, decision) ? " needed" : ""}${key === ROOT ? " centre" : ""}`}
                transform={`translate(${place.x - width / 2},${place.y - height / 2})`}
              >
                <rect width={width} height={height} rx={6} />
                {lines.map((line, n) => (
                  <text key={n} x={width / 2} y={17 + 15 * n}>
                    {n === 0 && isDecided(node, decision) ? `✓ ${line}` : line}
                  </text>
                ))}
                <title>{node === undefined ? "the real subgraph" : about(node)}</title>
              </g>
            );
          })}
        </svg>
      </div>
    </>
  );
}

function isDecided(node: TreeNode | undefined, decision: Decision): boolean {
  return node !== undefined && node.parent === 0 && node.rule === decision.rule;
}

/** The nodes of a decision's tree that are drawn: a parent has no fewer visits than its children. */
function mostVisited(decision: Decision, tree: SearchTree): TreeNode[] {
  return tree.nodes
    .filter((node) => node.decision === decision.decision)
    .sort((a, b) => b.visits - a.visits || a.id - b.id)
    .slice(0, MOST_DRAWN);
}

function arranged(nodes: TreeNode[]) {
  const boxes = [{ key: ROOT, lines: ["real subgraph"] }, ...nodes.map(textOf)].map((box) => ({
    ...box,
    width: 36 + 7.2 * Math.max(...box.lines.map((line) => line.length)),
    height: 12 + 15 * box.lines.length,
  }));
  const edges = nodes.map((node) => ({ from: String(node.parent), to: String(node.id) }));
  return { boxes, ...layOut(boxes, edges) };
}

function textOf(node: TreeNode): { key: string; lines: string[] } {
  const state = node.state === "open" ? "" : `, ${node.state}`;
  const lines = [
    short(node.rule, 26),
    `${plural(node.visits, "rollout")}, ${node.mean_ms.toPrecision(3)} ms`,
    `${time(node.cost_us)}${state}`,
  ];
  return { key: String(node.id), lines };
}

function about(node: TreeNode): string {
  return `${node.rule}: ${plural(node.visits, "rollout")} through it, mean return ${node.mean_ms.toPrecision(4)} ms, cheapest graph ${time(node.cost_us)}, ${plural(node.e_nodes, "e-node")}, ${node.state}`;
}
