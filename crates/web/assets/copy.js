// Adds a button that copies the text of a field. Without this script the field can be selected by hand.
for (const button of document.querySelectorAll("button[data-copies]")) {
  const field = document.getElementById(button.dataset.copies);
  const message = document.getElementById(button.dataset.says);
  field.addEventListener("focus", () => field.select());
  button.hidden = false;
  button.addEventListener("click", async () => {
    message.textContent = "";
    field.select();
    let isCopied;
    try {
      await navigator.clipboard.writeText(field.value);
      isCopied = true;
    } catch {
      // The clipboard API needs a secure context; without TLS the older command still works.
      isCopied = document.execCommand("copy");
    }
    message.textContent = isCopied ? "Copied." : "Copying is not available in this browser. The text is selected: copy it with the keyboard.";
  });
}
