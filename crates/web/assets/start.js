
// The start page with scripts: the code is that of the form that was changed last. This is appended to the scripts of code, whose
// functions it uses.
let edited = document.querySelector(code.dataset.form);
codeRequest = () => {
  const fields = new URLSearchParams(new FormData(edited));
  fields.delete("form_token");
  return { url: `${code.dataset.path}?${fields}`, body: null };
};
for (const form of document.querySelectorAll(".ask-form form")) {
  form.addEventListener("input", () => (edited = form));
  form.addEventListener("change", () => (edited = form));
  followForm(form);
}
