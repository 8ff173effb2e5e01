// The weights, bit for bit those of the run.
//
// Their bytes are sorted into four planes (all first bytes, all second bytes, ...), because
// the plane of exponents then shrinks to less than half; deflated; and written in base64.

async function readWeights(text, places) {
  const planes = await inflate(fromBase64(text));
  const count = planes.length / 4;
  const bytes = new Uint8Array(planes.length);
  for (let plane = 0; plane < 4; plane++) {
    const start = plane * count;
    for (let i = 0; i < count; i++) bytes[4 * i + plane] = planes[start + i];
  }
  const numbers = new Float32Array(bytes.buffer);
  const tensors = {};
  for (const { name, start, length } of places) {
    tensors[name] = numbers.subarray(start, start + length);
  }
  return tensors;
}

function fromBase64(text) {
  const letters = atob(text.trim());
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
