/** The graphs of a film, made from the changes between them. */
import type { Film, Frame, FrameChange, Value } from "./data";

export function lastFrame(film: Film): Frame {
  return frameAfter(film, film.steps.length);
}

/** The graph after so many steps. */
export function frameAfter(film: Film, steps: number): Frame {
  return film.steps
    .slice(0, steps)
    .reduce((frame, step) => changed(frame, step.change), film.start);
}

export function changed(frame: Frame, change: FrameChange): Frame {
  const values = new Map<string, Value>(frame.values.map((value) => [value.id, value]));
  for (const id of change.gone) values.delete(id);
  for (const value of change.put) values.set(value.id, value);
  return { values: [...values.values()], outputs: change.outputs };
}
