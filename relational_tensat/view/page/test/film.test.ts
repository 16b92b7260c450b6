import { expect, test } from "vitest";
import type { Film, FilmStep } from "../src/data";
import { frameAfter, saved, stepsOfClass, stepThatPut, stepThatRemoved } from "../src/film";
import { frame } from "./graphs";

const start = frame("1 = input\n2 = relu 1\n3 = relu 2");
const [, , last] = frame("1 = input\n2 = tanh 1\n3 = neg 1").values;
if (last === undefined) throw new Error("no value");
const step = { number: 1, cost_us: 6, change: { gone: ["2"], put: [last], outputs: ["3"] } };
const film: Film = { start, start_us: 10, steps: [step as unknown as FilmStep] };

test("a frame is the one before with what its step changed", () => {
  expect(frameAfter(film, 0)).toBe(start);
  expect(frameAfter(film, 1).values.map((value) => value.id)).toEqual(["1", "3"]);
  expect(saved(film, film.steps[0] as FilmStep)).toBe(4);
});

test("which step took a value away, and which put another", () => {
  const [input, relu, other] = start.values;
  if (!input || !relu || !other) throw new Error("no values");
  expect(stepThatRemoved(film, input)).toBeUndefined();
  expect(stepThatRemoved(film, relu)?.number).toBe(1);
  expect(stepThatRemoved(film, other)?.number).toBe(1);
  expect(stepThatPut(film, last.enode)?.number).toBe(1);
  expect(stepsOfClass(film, 2)).toHaveLength(1);
  expect(stepsOfClass(film, 1)).toHaveLength(0);
});
