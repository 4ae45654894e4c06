// Offers to copy what stands in a field, where the browser can. Without this script the field can be selected by hand.
for (const button of document.querySelectorAll("button[data-copies]")) {
  const field = document.getElementById(button.dataset.copies);
  const said = document.getElementById(button.dataset.says);
  field.addEventListener("focus", () => field.select());
  button.hidden = false;
  button.addEventListener("click", async () => {
    said.textContent = "";
    field.select();
    let isCopied;
    try {
      await navigator.clipboard.writeText(field.value);
      isCopied = true;
    } catch {
      // Without TLS there is no clipboard, but there is the older way.
      isCopied = document.execCommand("copy");
    }
    said.textContent = isCopied ? "Copied." : "Your browser does not let pages copy. The key is selected: copy it yourself.";
  });
}
