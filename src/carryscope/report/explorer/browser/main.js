// The explorer: reads what the page holds, and from then on shows whatever is chosen.

class Explorer {
  constructor(root, data, tensors) {
    const { layout } = data;
    Object.assign(this, { root, data, layout, place: null });
    this.clean = new Transformer(layout, tensors);
    this.changed = new Transformer(layout, tensors, this.clean.firstLayer);
    this.store = new Store(
      layout,
      fromFragment(location.hash, layout, this.first()) ?? this.first(),
    );
    const preview = (place) => this.preview(place);
    this.sum = new SumView(root, this.store, data);
    this.layers = Array.from(
      { length: layout.layers },
      (_, layer) => new LayerView(layer, this.store, data, preview),
    );
    root.querySelector("[data-part=layers]").append(...this.layers.map((view) => view.element));
    this.inspector = new Inspector(root, this.store, data);
    this.removed = new RemovedView(root, this.store, layout);
    this.tour = new Tour(root, this.store, data);
    this.store.listeners.push(
      () => this.render(),
      () => this.linkLater(),
    );
    window.addEventListener("hashchange", () => this.followLink());
    this.render();
  }

  // What is shown at first: the hardest of the sums that the paper is about, two nines.
  first() {
    const { examples } = this.data;
    const { sum } = examples.find((example) => example.label === "Cascade 2") ?? examples.at(-1);
    const { digits, lastRow } = this.layout;
    return {
      ...parseQuestion(sum, this.layout),
      off: [],
      how: "mean",
      row: lastRow - 1 - Math.min(3, digits),
    };
  }

  render() {
    this.result = this.answer(this.store.state);
    this.sum.render(this.result);
    this.removed.render(this.result);
    this.showRow();
    this.tour.render(this.result);
  }

  // The maps and the words below them, for the row under the pointer or the one chosen.
  showRow() {
    const row = this.place?.row ?? this.store.state.row;
    for (const layer of this.layers) layer.render(this.result, row);
    this.inspector.render(this.result, row, this.place);
    for (const card of this.sum.cards) setAttribute(card.element, "data-look", card.row === row);
  }

  preview(place) {
    const same = place?.row === this.place?.row && place?.name === this.place?.name;
    this.place = place;
    if (!same) this.showRow();
  }

  answer(state) {
    const whole = this.clean.run(state.question, new Plan([], state.how, this.layout));
    const machine = state.off.length ? this.changed : this.clean;
    const plan = new Plan(state.off, state.how, this.layout);
    const given = state.off.length ? machine.run(state.question, plan) : whole;
    return {
      state,
      machine,
      tokens: given.tokens,
      digits: this.digits(state.question, given, whole),
    };
  }

  // Each answer token, highest first: what is written, the truth, and what the digit needs.
  digits(question, given, whole) {
    const { answerNames, symbols, digits } = this.layout;
    const columns = columnsOf(question, this.layout);
    const truths = trueAnswer(question, this.layout);
    return answerNames.map((name, place) => {
      const k = answerNames.length - 1 - place;
      const chances = probabilities(given.logits[place]);
      const written = symbols[given.answer[place]];
      const clean = symbols[whole.answer[place]];
      const truth = symbols[truths[place]];
      const { task = null, lookAhead = 0, carrying = false } = k <= digits ? columns[k] : {};
      const probability = chances[given.answer[place]];
      const right = written === truth;
      return {
        name,
        written,
        clean,
        truth,
        right,
        broken: clean === truth && !right,
        chances,
        probability,
        task,
        lookAhead,
        carrying,
      };
    });
  }

  // The address holds what is shown; written once a person pauses, since browsers limit how often.
  linkLater() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => writeLink(toFragment(this.store.state, this.layout)), 250);
  }

  followLink() {
    const state = fromFragment(location.hash, this.layout, this.store.state);
    const text = (shown) => toFragment(shown, this.layout);
    if (!state || text(state) === text(this.store.state)) return;
    this.store.change(state);
    this.sum.settled();
  }

  // For the console, and for tests: the logits of a sum with parts taken away, each row reading the
  // true answer (as Python's engine does), or what the model itself wrote.
  logits(sum, off = [], how = "mean", { free = false } = {}) {
    const { question, problem } = parseQuestion(sum, this.layout);
    if (problem) throw new Error(problem);
    const unknown = off.find((name) => !parsePart(name, this.layout));
    if (unknown) throw new Error(`This model has no part ${unknown}.`);
    this.asked ??= new Transformer(this.layout, this.clean.tensors, this.clean.firstLayer);
    const forced = free ? null : trueAnswer(question, this.layout);
    return this.asked.run(question, new Plan(off, how, this.layout), forced).logits;
  }
}

async function start(root) {
  const held = (name) => root.querySelector(`script[data-part=${name}]`);
  const data = JSON.parse(held("data").textContent);
  const tensors = await readWeights(held("weights").textContent, data.places);
  held("weights").remove(); // megabytes of text that are no longer needed
  root.explorer = new Explorer(root, data, tensors);
  root.querySelector("[data-part=waiting]").remove();
  root.setAttribute("aria-busy", "false");
  // In a long page a link to the explorer leads to it.
  const away = root.getBoundingClientRect().top > window.innerHeight;
  if (away && location.hash.startsWith(FRAGMENT)) root.scrollIntoView();
}

for (const root of document.querySelectorAll(".carryscope-explorer")) {
  start(root).catch((error) => {
    setText(
      root.querySelector("[data-part=waiting]") ?? root,
      `The explorer could not start: ${error.message}`,
    );
    throw error;
  });
}
