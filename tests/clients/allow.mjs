// Acts as the person at the browser: node allow.mjs '{"url", "email", "password"}' opens an app's authorization URL,
// signs in, allows the app, and follows the redirect to it.
import { Visitor } from "../pages/visitor.mjs";

const { url, email, password } = JSON.parse(process.argv[2]);
const answer = await new Visitor(new URL(url).origin).allow(url, { email, password });
const response = await fetch(answer);
console.log(`the app answered ${response.status}`);
