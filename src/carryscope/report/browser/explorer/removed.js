// What is taken away, what that breaks, and the way back.

class RemovedView {
  constructor(root, store, layout) {
    Object.assign(this, { root, store, layout });
    const part = (name) => root.querySelector(`[data-part=${name}]`);
    this.answer = part("short-answer");
    this.status = part("status");
    this.chips = part("removed");
    this.undo = part("undo");
    this.reset = part("reset");
    this.copy = part("copy");
    this.hows = [...root.querySelectorAll("[data-how]")];
    this.donor = part("donor");
    this.donor.addEventListener("input", () => this.lent());
    this.undo.addEventListener("click", () => store.undo());
    this.reset.addEventListener("click", () => store.change({ off: [] }));
    this.copy.addEventListener("click", () => this.copyLink());
    for (const how of this.hows) {
      how.addEventListener("click", () => this.choose(how.dataset.how));
      how.addEventListener("keydown", (event) => this.pressed(event));
    }
    root.addEventListener("keydown", (event) => this.shortcut(event));
  }

  choose(how) {
    if (how !== this.store.state.how) this.store.change({ how });
  }

  // The sum that parts are taken from counts as soon as it is one.
  lent() {
    const { question } = parseQuestion(this.donor.value, this.layout);
    setAttribute(this.donor, "aria-invalid", question ? null : "true");
    if (!question) return;
    this.store.change({ other: questionText(question) }, { typing: true });
  }

  // They are one choice, so arrows go from one to the next.
  pressed(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const names = this.hows.map((how) => how.dataset.how);
    const at = names.indexOf(this.store.state.how) + step + names.length;
    this.choose(names[at % names.length]);
    this.hows.find((how) => how.dataset.how === this.store.state.how).focus();
  }

  shortcut(event) {
    const undo = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key === "z";
    if (!undo || event.target.matches("input")) return;
    event.preventDefault();
    this.store.undo();
  }

  // From a file, what somebody else can use is the name of the file and what is shown in it.
  async copyLink() {
    const fragment = toFragment(this.store.state, this.layout);
    const page = location.href.split("#")[0];
    const name = location.protocol === "file:" ? page.split("/").at(-1) : page;
    writeLink(fragment);
    try {
      await navigator.clipboard.writeText(name + fragment);
      this.say("Copied");
    } catch {
      this.say("In the address bar");
    }
  }

  // Said on the button for a moment: the line next to it still shows the state.
  say(words) {
    setText(this.copy, words);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => setText(this.copy, "Link"), 2500);
  }

  render(result) {
    const { state, digits } = result;
    refill(this.answer, [
      element("span", {}, `${questionText(state.question)} = `),
      ...digits.filter((_, place) => isWritten(place, state)).map(shortDigit),
    ]);
    for (const how of this.hows) {
      const chosen = how.dataset.how === state.how;
      setAttribute(how, "aria-checked", chosen);
      how.tabIndex = chosen ? 0 : -1;
    }
    this.donor.parentElement.hidden = state.how !== "swap";
    if (document.activeElement !== this.donor) this.donor.value = state.other;
    this.undo.disabled = this.store.past.length === 0;
    this.reset.disabled = state.off.length === 0;
    refill(
      this.chips,
      state.off.map((name) => this.chip(name)),
    );
    setText(this.status, statusText(result, this.layout));
  }

  chip(name) {
    const words = partWords(parsePart(name, this.layout), this.layout);
    const back = () => this.store.toggle(name);
    return element(
      "li",
      {},
      element(
        "button",
        { type: "button", "data-name": name, "aria-label": `Put back ${words}`, onclick: back },
        words,
        element("span", { "aria-hidden": "true" }, "×"),
      ),
    );
  }
}

function shortDigit({ written, right, broken }) {
  return element("b", { "data-right": right, "data-broken": broken }, written);
}

// In a sentence: the answer, and which digits break without the parts taken away.
function statusText({ digits, state }, layout) {
  const done = state.written;
  if (done !== null) return `Writing ${digits[done - 1].name}, ${done} of ${digits.length}.`;
  const wrong = digits.filter((digit) => !digit.right).map((digit) => digit.name);
  const all = wrong.length === digits.length;
  const some = all ? "Every digit is wrong." : `Wrong at ${listed(wrong)}.`;
  const verdict = wrong.length ? some : "Every digit is right.";
  if (!state.off.length) return `Nothing is taken away. ${verdict}`;
  const parts = state.off.map((name) => partWords(parsePart(name, layout), layout));
  const without = parts.length > 3 ? `${parts.length} parts` : listed(parts);
  const broken = digits.filter((digit) => digit.broken).map((digit) => digit.name);
  const mended = digits
    .filter((digit) => digit.right && digit.clean !== digit.truth)
    .map((digit) => digit.name);
  const effects = [];
  if (broken.length) effects.push(`${listed(broken)} break${broken.length > 1 ? "" : "s"}`);
  if (mended.length) effects.push(`${listed(mended)} turn${mended.length > 1 ? "" : "s"} right`);
  const same = digits.every((digit) => digit.written === digit.clean);
  const effect = effects.join(", ") || (same ? "the answer stays the same" : "wrong digits change");
  if (state.how === "swap") return `With ${without} of ${state.other}: ${effect}.`;
  return `Without ${without}: ${effect}.`;
}
