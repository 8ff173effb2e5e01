// The guided tour: a small window that walks through the steps and sets up what each talks about.

class Tour {
  constructor(root, store, data) {
    Object.assign(this, { root, store, data, at: -1 });
    const part = (name) => root.querySelector(`[data-part=${name}]`);
    this.box = part("tour");
    this.count = part("tour-count");
    this.title = part("tour-title");
    this.text = part("tour-text");
    this.back = part("tour-back");
    this.next = part("tour-next");
    this.opener = part("tour-open");
    this.opener.addEventListener("click", () => this.show(0));
    this.back.addEventListener("click", () => this.show(this.at - 1));
    this.next.addEventListener("click", () => this.show(this.at + 1));
    part("tour-close").addEventListener("click", () => this.close());
    this.box.addEventListener("keydown", (event) => event.key === "Escape" && this.close());
  }

  get open() {
    return this.at >= 0;
  }

  show(at) {
    const steps = tourSteps(this.data);
    if (at >= steps.length) return this.close();
    const step = steps[at];
    this.at = at;
    this.box.hidden = false;
    const { question } = parseQuestion(step.sum, this.data.layout);
    this.before ??= this.store.state;
    this.store.show({ question, off: step.off, how: "mean", row: step.row });
    this.shown = this.store.state;
    setText(this.count, `Step ${at + 1} of ${steps.length}`);
    setText(this.title, step.title);
    this.back.disabled = at === 0;
    setText(this.next, at === steps.length - 1 ? "Done" : "Next");
    this.point(step.where);
    this.title.focus({ preventScroll: true });
  }

  // The text of a step speaks of the answer that is there now.
  render(result) {
    if (this.open) setText(this.text, tourSteps(this.data)[this.at].text(result));
  }

  point(where) {
    for (const lit of this.root.querySelectorAll(".lit")) lit.classList.remove("lit");
    const place = where && this.root.querySelector(`[data-tour=${where}]`);
    if (!place) return;
    place.classList.add("lit");
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    place.scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
  }

  // What a person saw before is shown again; what they did meanwhile stays.
  close() {
    if (!this.open) return;
    this.at = -1;
    this.box.hidden = true;
    this.point(null);
    const { question, off } = this.store.state;
    if (question === this.shown.question && off === this.shown.off) this.store.show(this.before);
    this.before = undefined;
    this.opener.focus({ preventScroll: true });
  }
}
