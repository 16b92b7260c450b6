import { expect, test } from "vitest";
import { align } from "../src/graph/aligned";
import { compare, named } from "../src/graph/comparison";
import { fold, recurring } from "../src/graph/folding";
import { visible } from "../src/graph/visible";
import { forms, frame } from "./graphs";

const BEFORE = frame(`
  1 = input
  2 = weight
  3 = matmul 1 2
  4 = add 3 1
  5 = relu 4
`);
const AFTER = frame(`
  1 = input
  2 = weight
  7 = fused 1 2
  4 = part 7
  5 = relu 4
`);
const ALL = { constants: false, folds: false, radius: 0 };

function states(before = BEFORE, after = AFTER): Record<string, string> {
  const slots = align(visible(before, forms, false), visible(after, forms, false));
  return Object.fromEntries(slots.map((slot) => [slot.key, slot.state]));
}

test("what is equal, what is computed otherwise, what is gone, what is new", () => {
  expect(states()).toEqual({ 1: "equal", 3: "gone", 7: "new", 4: "changed", 5: "equal" });
});

test("values of one class stand in one slot although their ids differ", () => {
  const shared = frame(`
    1 = input
    4.1 = neg 1
    5 = relu 4.1
  `);
  expect(states(BEFORE, shared)).toEqual({ 1: "equal", 3: "gone", 4: "changed", 5: "equal" });
});

test("operands stand before what is computed from them, on either side", () => {
  const slots = align(visible(BEFORE, forms, true), visible(AFTER, forms, true));
  const seen = new Set<string>();
  for (const slot of slots) {
    expect(slot.inputs.every((key) => seen.has(key))).toBe(true);
    seen.add(slot.key);
  }
  expect(seen.size).toBe(6);
});

test("every slot has a place of its own, and equal values have one place", () => {
  const { layout, slots } = compare(BEFORE, AFTER, forms, ALL);
  const places = slots.map((slot) => layout.places.get(slot.key));
  const spots = new Set(places.map((place) => `${place?.x} ${place?.y}`));
  expect(spots.size).toBe(slots.length);
  const level = (key: string) => layout.places.get(key)?.y ?? 0;
  expect(level("1")).toBeLessThan(level("4"));
  expect(level("4")).toBeLessThan(level("5"));
});

test("only what is near a change is drawn if so little is asked for", () => {
  const long = frame(
    ["1 = input", ...Array.from({ length: 20 }, (_, n) => `${n + 2} = relu ${n + 1}`)].join("\n"),
  );
  const other = {
    ...long,
    values: long.values.map((v) => (v.id === "10" ? { ...v, enode: 1 } : v)),
  };
  const { slots } = compare(long, other, forms, { ...ALL, radius: 2 });
  expect(slots.map((slot) => slot.key)).toEqual(["8", "9", "10", "11", "12"]);
});

function layers(count: number, odd = -1): string {
  const lines = ["1 = input"];
  let last = 1;
  for (let layer = 0; layer < count; layer += 1) {
    const base = 10 * (layer + 1);
    lines.push(
      `${base} = matmul ${last}`,
      `${base + 1} = ${layer === odd ? "tanh" : "relu"} ${base}`,
    );
    lines.push(`${base + 2} = neg ${base + 1}`, `${base + 3} = add ${base + 2} ${last}`);
    last = base + 3;
  }
  return lines.join("\n");
}

test("layers that recur are one with a count; one that differs is not among them", () => {
  const label = (slot: { before: { value: { form: number } } | null }) =>
    String(slot.before?.value.form);
  for (const [count, odd, times] of [
    [8, -1, [8]],
    [9, 4, [4, 4]],
    [2, -1, []],
  ] as const) {
    const graph = visible(frame(layers(count, odd)), forms, false);
    const slots = align(graph, graph);
    const blocks = recurring(slots, label);
    expect(blocks.map((block) => block.times)).toEqual(times);
    expect(blocks.every((block) => block.length === 4)).toBe(true);
    const folded = fold(slots, blocks);
    const hidden = blocks.reduce((sum, block) => sum + (block.times - 1) * block.length, 0);
    expect(folded.slots.length).toBe(slots.length - hidden);
    const keys = new Set(folded.slots.map((slot) => slot.key));
    expect(folded.slots.every((slot) => slot.inputs.every((key) => keys.has(key)))).toBe(true);
  }
});

test("what recurs is one only if it is used at one place", () => {
  const pairs = Array.from(
    { length: 4 },
    (_, n) => `${n + 10} = input\n${n + 20} = matmul ${n + 10}`,
  );
  const order = Array.from({ length: 4 }, (_, n) => pairs[n]).join("\n");
  const together = frame(`${order}\n30 = concat 20 21 22 23`);
  const apart = frame(`${order}\n30 = relu 20\n31 = add 30 21\n32 = mul 31 22\n33 = sub 32 23`);
  const times = (graph: typeof apart) =>
    compare(graph, graph, forms, { ...ALL, folds: true }).folded.map(({ block }) => block.times);
  expect(times(together)).toEqual([4]);
  expect(times(apart)).toEqual([]);
});

test("a thousand operators are laid out", () => {
  const { slots } = compare(frame(layers(250)), frame(layers(250)), forms, ALL);
  expect(slots.length).toBe(1001);
}, 60_000);

test("operators and values are found by a part of their name, on the sides that are drawn", () => {
  const before = frame(`
    1 = input
    2 = reduce_mean 1
    3 = relu 2
  `);
  for (const value of before.values.slice(2)) value.names.push("/layer.0/Activation");
  const after = frame(`
    1 = input
    4 = fused 1
    3 = relu 4
  `);
  const { slots } = compare(before, after, forms, ALL);
  const found = (words: string, sides: ("before" | "after")[] = ["before", "after"]) =>
    named(slots, sides, forms, words).map((slot) => slot.key);
  expect(found("ReduceMean")).toEqual(["2"]);
  expect(found("ReduceMean", ["after"])).toEqual([]);
  expect(found("fused")).toEqual(["4"]);
  expect(found("layer.0/act", ["before"])).toEqual(["3"]);
  expect(found("  ")).toEqual([]);
  expect(found("no such name")).toEqual([]);
});
