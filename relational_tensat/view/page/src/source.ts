/** Where a page gets what it does not show at once: from what it carries, or from its own server. */
import type {
  QueryAnswer as Answer,
  EClass,
  OperatorForm as Form,
  Hit,
  PageData,
  FilmAndSearch,
  Unused,
} from "./data";

export interface Source {
  /** Whether there is a database behind the page. */
  isServed: boolean;
  /** Classes, without those that the page does not hold. */
  eclasses(ids: number[]): Promise<EClass[]>;
  /** Classes in which each word occurs: as operator, type, rule or name of a tensor. */
  find(text: string): Promise<Hit[]>;
  /** A query that is still being answered is stopped. */
  ask(query: string): Promise<Answer>;
  /** Stop the query that is being answered. */
  stop(): void;
  whyUnused(rule: string): Promise<Unused | null>;
  /** The film, where the page does not have it. */
  film(): Promise<FilmAndSearch>;
}

const MOST_FOUND = 60;

/** What the page carries. */
export function carried(data: PageData): Source {
  const classes = new Map(data.egraph.classes.map((item) => [item.id, item]));
  const texts = new Map<number, string>();
  const text = (item: EClass): string => {
    const known = texts.get(item.id);
    if (known !== undefined) return known;
    const parts = item.enodes.flatMap((enode) => {
      const form = data.forms[enode.form];
      return [form?.op, JSON.stringify(form?.attrs), enode.rule];
    });
    const made = [...item.names, item.type, ...parts].join(" ").toLowerCase();
    texts.set(item.id, made);
    return made;
  };
  return {
    isServed: false,
    eclasses: (ids) => Promise.resolve(ids.flatMap((id) => classes.get(id) ?? [])),
    find: (query) => {
      const words = query.toLowerCase().split(/\s+/).filter(Boolean);
      const found = data.egraph.classes.filter((item) =>
        words.every((word) => text(item).includes(word)),
      );
      return Promise.resolve(found.slice(0, MOST_FOUND).map((item) => hit(item, data.forms)));
    },
    ask: (query) => {
      const example = data.examples.find((item) => item.query === query);
      if (example !== undefined) return Promise.resolve(example.answer);
      return Promise.reject(new Error("this page carries the answers to the examples only"));
    },
    stop: () => undefined,
    whyUnused: (rule) => Promise.resolve(data.unused.find((item) => item.rule === rule) ?? null),
    film: () => Promise.reject(new Error("this page has no film")),
  };
}

function hit(item: EClass, forms: Form[]): Hit {
  const ops = item.enodes.map((enode) => forms[enode.form]?.op ?? "");
  const { id, names, type, is_needed } = item;
  return { id, names, type, is_needed, ops: [...new Set(ops)], e_nodes: item.enodes.length };
}

/** The page's own server, which reads the database; forms that its answers name are added to the page's. */
export function served(data: PageData, prefix: string): Source {
  const ask = async (name: string, question: string): Promise<unknown> => {
    const text = encodeURIComponent(question);
    const known = data.forms.length;
    const response = await fetch(`${prefix}/api/${name}?q=${text}&known=${known}`);
    const { answer, forms, error } = (await response.json()) as Reply;
    if (!response.ok) throw new Error(error ?? response.statusText);
    (forms ?? []).forEach((form, place) => {
      data.forms[known + place] = form;
    });
    return answer;
  };
  return {
    isServed: true,
    eclasses: async (ids) => (await ask("classes", ids.join(","))) as EClass[],
    find: async (text) => (await ask("find", text)) as Hit[],
    ask: async (text) => (await ask("ask", text)) as Answer,
    stop: () => void ask("stop", "").catch(() => undefined), // then nothing is left to stop
    whyUnused: async (rule) => (await ask("unused", rule)) as Unused,
    film: async () => (await ask("film", "")) as FilmAndSearch,
  };
}

interface Reply {
  answer?: unknown;
  forms?: Form[];
  error?: string;
}
