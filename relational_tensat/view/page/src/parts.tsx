/** Small controls that several views have. */
import { useEffect, useState } from "preact/hooks";

interface ChoiceProps<T extends string> {
  label: string;
  value: T;
  options: Record<T, string>;
  onChange: (value: T) => void;
}

/** One of a few values. */
export function Choice<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      {(Object.keys(options) as T[]).map((key) => (
        <button key={key} type="button" aria-pressed={key === value} onClick={() => onChange(key)}>
          {options[key]}
        </button>
      ))}
    </fieldset>
  );
}

interface CheckProps {
  label: string;
  value: boolean;
  onChange: (value: boolean) => void;
}

export function Check({ label, value, onChange }: CheckProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={value}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      {label}
    </label>
  );
}

interface ZoomProps {
  value: number | "fit";
  onChange: (value: number | "fit") => void;
}

export function Zoom({ value, onChange }: ZoomProps) {
  const now = value === "fit" ? 1 : value;
  return (
    <fieldset class="choice">
      <legend>size</legend>
      <button
        type="button"
        aria-label="smaller"
        onClick={() => onChange(Math.max(0.2, now / 1.25))}
      >
        −
      </button>
      <button type="button" aria-pressed={value === "fit"} onClick={() => onChange("fit")}>
        fit
      </button>
      <button type="button" aria-label="larger" onClick={() => onChange(Math.min(3, now * 1.25))}>
        +
      </button>
    </fieldset>
  );
}

/** Light, dark, or as the system has it. */
export function Theme() {
  const themes = ["", "light", "dark"];
  const [theme, setTheme] = useState("");
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
  }, [theme]);
  return (
    <button
      type="button"
      class="theme"
      onClick={() => {
        setTheme(themes[(themes.indexOf(theme) + 1) % themes.length] ?? "");
      }}
    >
      {theme === "" ? "light or dark: as the system" : theme}
    </button>
  );
}
