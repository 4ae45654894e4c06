// Lays the newer image over the older one, with a slider between them, and hides the outlines of what changed. Without scripts
// the images are side by side, with outlines.
const comparison = document.getElementById("comparison");
const slider = document.getElementById("slider");
const position = document.getElementById("position");
const button = document.getElementById("overlay");

button.addEventListener("click", () => {
  const isOverlay = comparison.classList.toggle("overlay");
  button.setAttribute("aria-pressed", String(isOverlay));
  slider.hidden = !isOverlay;
  if (isOverlay) position.focus();
});

const outline = document.getElementById("outline");
outline?.addEventListener("click", () => outline.setAttribute("aria-pressed", String(comparison.classList.toggle("outlined"))));

const move = () => comparison.style.setProperty("--position", `${position.value}%`);
position.addEventListener("input", move);
move();
