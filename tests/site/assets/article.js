"use strict";

// Builds the table of contents, then fetches what the third mark waits for: a reader sees both, so a picture must too.
document.addEventListener("DOMContentLoaded", async () => {
  const list = document.createElement("ol");
  for (const heading of document.querySelectorAll("h2")) {
    const item = document.createElement("li");
    item.textContent = heading.textContent;
    list.append(item);
  }
  document.querySelector("nav").append(list);
  document.getElementById("mark-script").style.background = "#1f4fbf";

  const answer = await fetch("/article/data.json");
  const { colour } = await answer.json();
  document.getElementById("mark-data").style.background = colour;
});
