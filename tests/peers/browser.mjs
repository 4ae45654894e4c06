// The browser and the devices that all other tools use.

export const executablePath = process.env.GRABD_PEERS_CHROMIUM ?? '/usr/bin/chromium-headless-shell';

// The pages are our own or were reviewed, and the tools cannot run as another user, so no sandbox is needed.
export const flags = [
  '--no-sandbox',
  '--hide-scrollbars',
  '--disable-background-networking',
  '--disable-dev-shm-usage',
  // Those of a measurement, separated by line breaks.
  ...(process.env.GRABD_PEERS_FLAGS ?? '').split('\n').filter((flag) => flag !== ''),
];

// With these, every host but that of the captured sites is unknown, as it is to grabd in the same run.
export const isolatedFlags = () => {
  const host = process.env.GRABD_PEERS_ONLY_HOST;
  return host ? [...flags, `--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE ${host}`] : flags;
};

// Those that grabd has for `device`.
export const DEVICES = {
  desktop: { width: 1280, height: 720, scale: 1 },
  phone: { width: 390, height: 844, scale: 3 },
};
