/** The graphs of a film, made from the changes between them. */
import type { Film, FilmStep, GraphFrame as Frame, FrameChange, ValueRow as Value } from "./data";

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

/** What a step costs or saves. */
export function saved(film: Film, step: FilmStep): number {
  const before = film.steps[step.number - 2]?.cost_us ?? film.start_us;
  return before - step.cost_us;
}

/** The steps that touch an e-class: what they replace, or what they put beside it. */
export function stepsOfClass(film: Film | null, eclass: number): FilmStep[] {
  const isOf = (id: string) => Number.parseInt(id, 10) === eclass;
  return (film?.steps ?? []).filter(
    ({ change }) => change.gone.some(isOf) || change.put.some((value) => value.eclass === eclass),
  );
}

/** The first step after which a value of the original is gone, or is computed otherwise. */
export function stepThatRemoved(film: Film | null, value: Value): FilmStep | undefined {
  return film?.steps.find(
    ({ change }) =>
      change.gone.includes(value.id) ||
      change.put.some((put) => put.id === value.id && put.enode !== value.enode),
  );
}

/** The first step that put an e-node. */
export function stepThatPut(film: Film | null, enode: number): FilmStep | undefined {
  return film?.steps.find(({ change }) => change.put.some((put) => put.enode === enode));
}
