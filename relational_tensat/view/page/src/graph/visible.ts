/**
 * What of a frame is drawn: values that are known before inference only if asked for, and never what only
 * ties several outputs together.
 */
import type { OperatorForm as Form, GraphFrame as Frame, ValueRow as Value } from "../data";

export interface Visible {
  value: Value;
  /** Ids of operands that are drawn, too; each once. */
  inputs: string[];
}

export function visible(frame: Frame, forms: Form[], constants: boolean): Visible[] {
  const shown = frame.values.filter(
    (value) => (constants || !value.is_constant) && form(value, forms).op !== "noop",
  );
  const ids = new Set(shown.map((value) => value.id));
  return shown.map((value) => ({
    value,
    inputs: [...new Set(value.inputs.filter((id) => ids.has(id)))],
  }));
}

/** What one application costs under a source of costs; nothing where it is known before inference. */
export function costOf(value: Value, forms: Form[], source: number): number {
  if (value.is_constant) return 0;
  return form(value, forms).costs_us[source] ?? 0;
}

export function form(value: Value, forms: Form[]): Form {
  const found = forms[value.form];
  if (found === undefined) throw new Error(`no form ${value.form}`);
  return found;
}
