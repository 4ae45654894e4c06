// Finds the parameter of the node for a capture option, and fills it in.
import assert from "node:assert/strict";

function fill(property, value) {
  switch (property.type) {
    case "json":
      return JSON.stringify(value);
    case "collection":
      return members(property.options, value);
    case "fixedCollection": {
      assert.equal(property.options.length, 1, property.name);
      const [{ name, values }] = property.options;
      if (name === "entry") return { entry: Object.entries(value).map(([key, text]) => ({ name: key, value: text })) };
      return { [name]: Array.isArray(value) ? value.map((item) => members(values, item)) : members(values, value) };
    }
    case "multiOptions":
      for (const word of value) assert.ok(property.options.some((option) => option.value === word), `${property.name} ${word}`);
      return value;
    case "options":
      assert.ok(property.options.some((option) => option.value === value), `${property.name} ${value}`);
      return value;
    case "number": {
      const { minValue = -Infinity, maxValue = Infinity } = property.typeOptions;
      assert.ok(minValue <= value && value <= maxValue, `${property.name} ${value}`);
      return value;
    }
    default:
      if (property.type !== "string") return value;
      // Users type texts, also where the service accepts numbers.
      return Array.isArray(value) ? value.map(String) : String(value);
  }
}

/** The fields of an object. Those that are not there are in the collection of further ones. */
function members(properties, value) {
  const more = properties.find((property) => property.name === "more");
  const filled = more ? { more: {} } : {};
  for (const [name, member] of Object.entries(value)) {
    const field = properties.find((property) => property.name === name);
    if (field) filled[name] = fill(field, member);
    else filled.more[name] = fill(more.options.find((property) => property.name === name), member);
  }
  return filled;
}

/** The parameters of the node with one capture option. */
export function parametersFor(description, name, value) {
  const shown = description.properties.find((property) => property.name === name);
  if (shown) return { [name]: fill(shown, value) };
  const options = description.properties.find((property) => property.name === "options").options;
  const property = options.find((option) => option.name === name);
  assert.ok(property, `the node has the option ${name}`);
  return { options: { [name]: fill(property, value) } };
}
