oninstall = (event) => event.waitUntil(new Promise((done) => setTimeout(done, 300)).then(() => skipWaiting()))
onactivate = (event) => event.waitUntil(clients.claim())
