import { expect, test } from "vitest";
import { shape, short, time } from "../src/format";
import { readRoute } from "../src/route";

test("microseconds, in a unit that fits", () => {
  expect([0, 0.123, 4.567, 123.456, 12345, 2e6, null].map(time)).toEqual([
    "0 µs",
    "0.12 µs",
    "4.57 µs",
    "123.5 µs",
    "12.3 ms",
    "2.00 s",
    "unknown",
  ]);
});

test("shapes and long names", () => {
  expect(shape("(float32[1,64], float32[])")).toBe("(1×64, scalar)");
  expect(shape("int8[4]")).toBe("int8[4]");
  expect(short("0123456789", 5)).toBe("012…9");
});

test("addresses: what is none of ours is the first view", () => {
  expect(readRoute("#step=7")).toMatchObject({ view: "steps", step: 7 });
  expect(readRoute("#class=12")).toMatchObject({ view: "egraph", eclass: 12 });
  for (const hash of ["", "#", "#no", "#javascript:1", "#step=x"]) {
    expect(readRoute(hash).step).toBe(0);
  }
});
