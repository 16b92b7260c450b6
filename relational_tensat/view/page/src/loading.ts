/** What is on its way, is there, or went wrong. */
import { useEffect, useState } from "preact/hooks";

export type Loaded<T> = { value: T } | { error: string } | null;

/** The result of `load`, computed again whenever something of `inputs` changes; the last one counts. */
export function useLoaded<T>(load: () => Promise<T>, inputs: unknown[]): Loaded<T> {
  const [state, setState] = useState<Loaded<T>>(null);
  useEffect(() => {
    let isLast = true;
    setState(null);
    load().then(
      (value) => {
        if (isLast) setState({ value });
      },
      (error: unknown) => {
        if (isLast) setState({ error: error instanceof Error ? error.message : String(error) });
      },
    );
    return () => {
      isLast = false;
    };
  }, inputs);
  return state;
}
