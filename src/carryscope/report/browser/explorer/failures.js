// Sums that the model gets wrong, found by `carryscope risk`, and the button that shows them.

// What went wrong at the first wrong digit, by the carry it was written for.
const KINDS = {
  missed: "a CARRY was missed",
  invented: "a CARRY was invented",
  other: "something else",
};

class Failures {
  constructor(root, { layout, failures, proved }, show) {
    Object.assign(this, { layout, show, at: new Map() });
    this.all = (failures ?? []).map((failure) => this.known(failure)).filter(Boolean);
    const box = root.querySelector("[data-part=failing]");
    if (!this.all.length) {
      const none = proved ? "No sum fails: that is proved." : "No sum is known that fails.";
      box.replaceChildren(element("p", { class: "hint" }, failures || proved ? none : ""));
      return;
    }
    this.button = root.querySelector("[data-part=failure]");
    this.button.addEventListener("click", () => this.next());
    this.filters = [...box.querySelectorAll("select")];
    for (const filter of this.filters) {
      filter.append(...this.options(filter.dataset.by));
      filter.addEventListener("change", () => this.next());
    }
    this.told = root.querySelector("[data-part=failure-told]");
    setText(this.told, `${this.all.length} kinds of ${layout.operation.words.question} fail.`);
  }

  // A failure as it is filtered: its first wrong digit, what arrives there, and what went wrong.
  known([sum, answer]) {
    const { question } = parseQuestion(sum, this.layout);
    if (!question) return null;
    const { symbols, answerNames } = this.layout;
    const truth = trueAnswer(question, this.layout).map((token) => symbols[token]);
    const place = truth.findIndex((digit, i) => digit !== answer[i]);
    const k = answerNames.length - 1 - place;
    const column = columnsOf(question)[k];
    if (place < 0 || !column) return null;
    const carried = assumed({ k, ...column }, answer[place], question, this.layout);
    const kind = carried === null ? "other" : carried ? "invented" : "missed";
    return { sum, digit: answerNames[place], ahead: caseName(column), kind };
  }

  options(by) {
    const { words } = this.layout.operation;
    const named = {
      digit: (name) => `first at ${name}`,
      ahead: (name) => caseWords(name, words),
      kind: (name) => KINDS[name].replace("CARRY", words.carry),
    };
    const names = [...new Set(this.all.map((failure) => failure[by]))].sort();
    const order = by === "digit" ? names.reverse() : names;
    return order.map((name) => element("option", { value: name }, named[by](name)));
  }

  // The next failure that the filters let through.
  next() {
    const wanted = this.filters.filter((filter) => filter.value);
    const found = this.all.filter((one) => wanted.every((by) => one[by.dataset.by] === by.value));
    const chosen = wanted.map((filter) => filter.value).join();
    const at = found.length ? ((this.at.get(chosen) ?? -1) + 1) % found.length : 0;
    this.at.set(chosen, at);
    setText(this.button, "Show me the next failure");
    if (!found.length) return setText(this.told, "No such failure is known.");
    this.show(found[at].sum);
    setText(this.told, `${at + 1} of ${found.length} that are known.`);
  }

  // A sum for a digit and what lies below it, "A3" and "2+": one that fails there, if any is known.
  example(digit, ahead) {
    const fails = this.all.find((one) => one.digit === digit && one.ahead === ahead);
    if (fails) return fails.sum;
    const k = this.layout.answerNames.length - 1 - this.layout.answerNames.indexOf(digit);
    return simplest(k, parseInt(ahead, 10), ahead.endsWith("+"), this.layout);
  }
}

// What arrives at a digit, as a name: "2+", a carry through two nines; "1-", none above one.
function caseName({ lookAhead, carrying }) {
  return `${lookAhead}${carrying ? "+" : "-"}`;
}

function caseWords(name, { carry, passing, passing_plural }) {
  const nines = parseInt(name, 10);
  const below = nines === 1 ? `1 ${passing}` : `${nines || "no"} ${passing_plural}`;
  return `${name.endsWith("+") ? "a" : "no"} ${carry}, ${below} below`;
}

// The simplest sum in which digit k has so many nines below it, and a carry through them or none.
function simplest(k, nines, carrying, { digits, operation }) {
  const states = operation.state;
  const pair = (state) => {
    const base = states.length;
    for (let sum = 0; sum <= 2 * base; sum++) {
      for (let a = Math.min(sum, base - 1); a >= 0 && sum - a < base; a--) {
        if (states[a][sum - a] === state) return [a, sum - a];
      }
    }
  };
  const top = Math.min(k, digits); // a sign is decided where A_n is
  const [first, second] = [new Array(digits).fill(0), new Array(digits).fill(0)];
  const set = (column, state) => ([first[column], second[column]] = pair(state));
  for (let column = 0; column < digits; column++) set(column, KILL);
  for (let column = top - nines; column < top; column++) set(column, PROPAGATE);
  if (carrying) set(top - nines - 1, GENERATE);
  return questionText({ first, second, operation });
}
