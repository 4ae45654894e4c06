// What the node uses of n8n-workflow at run time. n8n brings the real module along.

class NodeError extends Error {
  constructor(node, cause, { message, ...options } = {}) {
    super(message ?? (cause instanceof Error ? cause.message : String(cause)));
    this.name = new.target.name;
    this.node = node;
    Object.assign(this, options);
  }
}

exports.NodeApiError = class NodeApiError extends NodeError {};
exports.NodeOperationError = class NodeOperationError extends NodeError {};
exports.sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
