// Lays the newer image over the older one, with a slider between them. Without scripts they are side by side.
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

const move = () => comparison.style.setProperty("--position", `${position.value}%`);
position.addEventListener("input", move);
move();
