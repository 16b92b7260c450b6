/** Where a page gets what it does not show at once: from what it carries, or from its own server. */
import type { Answer, EClass, Form, Hit, PageData, Unused } from "./data";

export interface Source {
  /** Whether there is a database behind the page. */
  isServed: boolean;
  /** A class; nothing where the page does not hold it. */
  eclass(id: number): Promise<EClass | null>;
  /** Classes in which each word occurs: as operator, type, rule or name of a tensor. */
  find(text: string): Promise<Hit[]>;
  ask(query: string): Promise<Answer>;
  whyUnused(rule: string): Promise<Unused | null>;
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
    eclass: (id) => Promise.resolve(classes.get(id) ?? null),
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
    whyUnused: (rule) => Promise.resolve(data.unused.find((item) => item.rule === rule) ?? null),
  };
}

function hit(item: EClass, forms: Form[]): Hit {
  const ops = item.enodes.map((enode) => forms[enode.form]?.op ?? "");
  const { id, names, type, is_needed } = item;
  return { id, names, type, is_needed, ops: [...new Set(ops)], e_nodes: item.enodes.length };
}

/** The page's own server, which reads the database; forms that it names are added to those of the page. */
export function served(data: PageData, prefix: string): Source {
  const get = async (path: string): Promise<unknown> => {
    const response = await fetch(`${prefix}/api/${path}`);
    const answer = (await response.json()) as { error?: string };
    if (!response.ok) throw new Error(answer.error ?? response.statusText);
    return answer;
  };
  const query = (name: string, value: string | number) =>
    get(`${name}?q=${encodeURIComponent(String(value))}`);
  return {
    isServed: true,
    eclass: async (id) => {
      const answer = (await query("class", id)) as {
        eclass: EClass | null;
        forms: [number, Form][];
      };
      for (const [index, form] of answer.forms) data.forms[index] = form;
      return answer.eclass;
    },
    find: async (text) => (await query("find", text)) as Hit[],
    ask: async (text) => (await query("ask", text)) as Answer,
    whyUnused: async (rule) => (await query("unused", rule)) as Unused,
  };
}
