// Verifies a webhook with JavaScript libraries: node verify.mjs FILE, where FILE holds {secret, headers, body}.
import { readFileSync } from "node:fs";
import { Webhook as Standard } from "standardwebhooks";
import { Webhook as Svix } from "svix";

const { secret, headers, body } = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const [name, Webhook] of [["standardwebhooks", Standard], ["svix", Svix]]) {
  const verifier = new Webhook(secret);
  verifier.verify(body, headers);
  let refused = false;
  try {
    verifier.verify(body + " ", headers);
  } catch {
    refused = true;
  }
  if (!refused) throw new Error(`${name}: a changed message was accepted`);
  console.log(`${name} verified ${JSON.parse(body).type}`);
}
