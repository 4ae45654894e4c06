// Lays the newer image over the older one, with a slider between them. Without this script they are side by side.
const comparison = document.getElementById("comparison");
const slider = document.getElementById("slider");
const position = document.getElementById("position");

const button = document.createElement("button");
button.type = "button";
button.textContent = "Overlay with a slider";
button.setAttribute("aria-pressed", "false");
button.setAttribute("aria-controls", "comparison");
comparison.before(button);

button.addEventListener("click", () => {
  const isOverlay = comparison.classList.toggle("overlay");
  button.setAttribute("aria-pressed", String(isOverlay));
  slider.hidden = !isOverlay;
  if (isOverlay) position.focus();
});

const move = () => comparison.style.setProperty("--position", `${position.value}%`);
position.addEventListener("input", move);
move();
