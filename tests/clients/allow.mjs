// Answers for the person at the browser: node allow.mjs '{"url", "email", "password"}' opens an app's address, signs in,
// allows what is asked, and follows the answer to the app.
import { Visitor } from "../pages/visitor.mjs";

const { url, email, password } = JSON.parse(process.argv[2]);
const answer = await new Visitor(new URL(url).origin).allow(url, { email, password });
const response = await fetch(answer);
console.log(`the app answered ${response.status}`);
