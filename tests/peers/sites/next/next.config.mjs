export default {
  output: 'export',
  basePath: '/built/next',
  trailingSlash: true,
  images: { unoptimized: true },
  // The packages are above this folder.
  turbopack: { root: new URL('../..', import.meta.url).pathname },
};
