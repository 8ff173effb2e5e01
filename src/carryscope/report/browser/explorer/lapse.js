// Time-lapse: the maps as they were on average at steps of the training whose weights were kept.

class Lapse {
  constructor(root, { layout, moments, examples }, show) {
    Object.assign(this, { layout, examples, show, at: null });
    this.moments = moments.map((moment) => ({ ...moment, ...meanPatterns(moment, layout) }));
    const part = (name) => root.querySelector(`[data-part=${name}]`);
    [this.box, this.slider, this.told] = ["lapse", "moment", "moment-told"].map(part);
    this.box.hidden = moments.length === 0;
    this.slider.max = moments.length;
    this.slider.addEventListener("input", () => this.choose(Number(this.slider.value)));
    this.leave();
  }

  // After the last moment comes the model as it is.
  choose(place) {
    this.at = this.moments[place] ?? null;
    this.show();
    this.render();
  }

  leave() {
    this.at = null;
    this.slider.value = this.moments.length;
    this.render();
  }

  render() {
    const words = this.at ? this.words(this.at) : "The trained model, for the sum above.";
    setText(this.told, words);
    setAttribute(this.slider, "aria-valuetext", this.at ? `step ${this.at.step}` : "trained");
  }

  words({ step, right, answers }) {
    const shares = right.map((share, i) => `${this.layout.answerNames[i]} ${percent(share)}`);
    const sums = this.examples.map(({ sum }, i) => {
      const { question } = parseQuestion(sum, this.layout);
      const truth = trueAnswer(question, this.layout).map((token) => this.layout.symbols[token]);
      return `${sum} = ${answers[i]} ${truth.join("") === answers[i] ? "✓" : "✗"}`;
    });
    return [
      `Step ${step.toLocaleString("en")}: attention on average.`,
      `Digits right: ${shares.join(", ")}.`,
      `${sums.join(", ")}.`,
    ].join(" ");
  }
}

// The attention of a moment, looked up as in a machine.
function meanPatterns({ attention }, { heads, lastRow }) {
  const levels = fromBase64(attention);
  return {
    patternAt: (layer, head, row) => {
      const start = ((layer * heads + head) * lastRow + row) * lastRow;
      return [...levels.subarray(start, start + row + 1)].map((level) => level / 255);
    },
  };
}
