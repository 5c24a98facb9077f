// A JSON parser for config.json. Unlike JSON.parse, it reports the line and column of an error in every browser, and
// returns integers as BigInts, so that 3 and 3.0 differ, as in Python.

const CONSTANTS = { true: true, false: false, null: null };
const TOKEN = /[{}[\],:]|"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"|[^\s{}[\],:"]+/uy;
const NUMBER_TOKEN = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

// Returns the value of a JSON text, or an error. `at` is the position of the current token.
/** @type {(text: string) => { value?: any, error?: string }} */
export function parseJson(text) {
  let at = 0;
  let token = "";
  let depth = 0;
  const fail = (expected) => {
    const lines = text.slice(0, at).split("\n");
    const found = token ? (token.length > 20 ? `${token.slice(0, 20)}…` : token) : at < text.length ? text[at] : "";
    const actual = found ? `found ${found}` : "but the text ends";
    throw new SyntaxError(`Line ${lines.length}, column ${lines.at(-1).length + 1}: expected ${expected}, ${actual}.`);
  };
  const next = () => {
    at += token.length;
    while (/^[ \t\r\n]/.test(text.slice(at, at + 1))) at++;
    TOKEN.lastIndex = at;
    token = TOKEN.exec(text)?.[0] ?? "";
  };
  // Parses items separated by commas, up to a closing bracket.
  const items = (close, item) => {
    if (++depth > 100) fail("at most 100 nested brackets");
    next();
    if (token === close) return next();
    for (;;) {
      item();
      if (token === close) break;
      if (token !== ",") fail(`a comma or ${close}`);
      next();
    }
    depth--;
    return next();
  };
  const string = (expected) => {
    if (token[0] !== '"') fail(text[at] === '"' ? "a text that ends on its line" : expected);
    const value = JSON.parse(token);
    next();
    return value;
  };
  const object = () => {
    const entries = [];
    items("}", () => {
      const key = string("a key in double quotes");
      if (token !== ":") fail("a colon");
      next();
      entries.push([key, anyValue()]);
    });
    return Object.fromEntries(entries);
  };
  const list = () => {
    const values = [];
    items("]", () => values.push(anyValue()));
    return values;
  };
  const anyValue = () => {
    if (token === "{") return object();
    if (token === "[") return list();
    if (token[0] === '"') return string("");
    const isInteger = /^-?\d+$/.test(token);
    const constant = Object.hasOwn(CONSTANTS, token);
    if (!constant && !NUMBER_TOKEN.test(token)) fail(text[at] === '"' ? "a text that ends on its line" : "a value");
    const value = constant ? CONSTANTS[token] : isInteger ? BigInt(token) : Number(token);
    next();
    return value;
  };
  try {
    next();
    const value = anyValue();
    if (at < text.length) fail("the end of the text");
    return { value };
  } catch (error) {
    if (error instanceof SyntaxError) return { error: error.message };
    throw error;
  }
}

// Formats a value as Python does: a BigInt is an integer, and every other number is a float.
/** @type {(value: any, inner?: (value: any) => string) => string} */
export function pythonLiteral(value, inner = pythonLiteral) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number") return Number.isInteger(value) ? `${value}.0` : String(value);
  if (Array.isArray(value)) return `[${value.map((each) => inner(each)).join(", ")}]`;
  if (typeof value === "object") {
    const items = Object.entries(value).map(([key, each]) => `${pythonLiteral(key)}: ${inner(each)}`);
    return `{${items.join(", ")}}`;
  }
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  const escaped = value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll("\t", "\\t");
  return quote + (quote === "'" ? escaped.replaceAll("'", "\\'") : escaped) + quote;
}

// Formats a value for an error message, in at most one line.
/** @type {(value: any) => string} */
export function formatValue(value) {
  if (Array.isArray(value) && value.some(Array.isArray)) return `a list of ${value.length}`;
  const text = shortLiteral(value);
  return text.length > 80 ? `${text.slice(0, 60)} …` : text;
}
function shortLiteral(value) {
  if (typeof value === "string") {
    if (pythonLiteral(value.slice(0, 60)).length <= 60) return pythonLiteral(value.slice(0, 60));
    const text = pythonLiteral(value.slice(0, 28) + value.slice(-29));
    return `${text.slice(0, 28)}...${text.slice(-29)}`;
  }
  if (Array.isArray(value) && value.length > 6) {
    return `[${value.slice(0, 6).map(shortLiteral).join(", ")}, ...]`;
  }
  if (value && typeof value === "object" && !Array.isArray(value)) {
    const keys = Object.keys(value).sort();
    const items = keys.slice(0, 4).map((key) => `${shortLiteral(key)}: ${shortLiteral(value[key])}`);
    return `{${items.join(", ")}${keys.length > 4 ? ", ..." : ""}}`;
  }
  return pythonLiteral(value, shortLiteral);
}
