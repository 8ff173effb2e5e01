// Play: the answer is written again, digit by digit, with lines from each to what its row reads.
//
// How far it has come stands in the state (`written`: digits that are there), so that a second
// model on the page writes along. It belongs to no link and is nothing to undo.

const PAUSES = { slow: 2600, normal: 1300, fast: 500 };

class Player {
  constructor(root, store, layout, firstWrong) {
    Object.assign(this, { store, layout, firstWrong, timer: null });
    const part = (name) => root.querySelector(`[data-part=${name}]`);
    [this.button, this.stepper, this.speed] = ["play", "step", "speed"].map(part);
    this.button.addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    this.stepper.addEventListener("click", () => this.step());
    store.listeners.push(({ written }) => written === null && this.pause());
  }

  play() {
    this.step();
    this.timer = setInterval(() => this.step(), PAUSES[this.speed.value]);
    this.speed.onchange = () => this.timer && (this.pause(), this.play());
    this.render();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.render();
  }

  // One digit more; after the last one all is as it was, and the first wrong digit is chosen.
  step() {
    const written = (this.store.state.written ?? 0) + 1;
    const { answerNames, firstRow } = this.layout;
    if (written <= answerNames.length) {
      this.store.show({ written, row: firstRow + written - 1 });
    } else this.store.show({ written: null, row: this.firstWrong() });
    this.render();
  }

  render() {
    const begun = this.store.state.written !== null;
    setText(this.button, this.timer ? "Pause" : begun ? "Go on" : "Play");
    setText(this.stepper, begun ? "Next digit" : "Step");
  }
}

// Lines over the sum, from a digit of the answer to what each head reads to write it.
class Lines {
  constructor(box, layout, cells, operator, cards) {
    Object.assign(this, { box, layout });
    this.drawing = svg("svg", { class: "lines", "aria-hidden": "true" });
    box.append(this.drawing);
    const { digits } = layout;
    const downwards = Array.from({ length: digits }, (_, i) => digits - 1 - i);
    this.read = [
      ...downwards.map((k) => cells.first[k]),
      operator,
      ...downwards.map((k) => cells.second[k]),
      null, // the sign before the answer
      ...cards.map((card) => card.element),
    ];
    this.cards = cards;
  }

  render(result, row) {
    const { written } = result.state;
    this.drawing.replaceChildren(...(written === null ? [] : this.lines(result, row)));
  }

  lines({ machine }, row) {
    const { layers, heads, firstRow } = this.layout;
    const from = this.middle(this.cards[row - firstRow].element, 0);
    const lines = [];
    for (let layer = 0; layer < layers; layer++) {
      for (let head = 0; head < heads; head++) {
        machine.patternAt(layer, head, row).forEach((share, position) => {
          const target = this.read[position];
          if (target && share >= LEAST_DRAWN) lines.push(this.line(from, target, head, share));
        });
      }
    }
    return lines;
  }

  line([x, y], target, head, share) {
    const [end, bottom] = this.middle(target, 0.8);
    const bend = (y + bottom) / 2;
    const path = `M${x},${y} C${x},${bend} ${end},${bend} ${end},${bottom}`;
    const drawn = svg("path", { d: path, "data-head": head % HEADS, pathLength: 1 });
    drawn.style.setProperty("--share", share);
    return drawn;
  }

  // A point on the middle line of an element, this share of its height below its top.
  middle(element, down) {
    const { left, top, width, height } = element.getBoundingClientRect();
    const box = this.box.getBoundingClientRect();
    return [left + width / 2 - box.left + this.box.scrollLeft, top + down * height - box.top];
  }
}

// What gets less of a head's attention has no line.
const LEAST_DRAWN = 0.1;
