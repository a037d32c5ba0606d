// Keeps the page's files, so that it starts at once and without a network. VERSION is a digest of all parts: an old one goes.
const VERSION = "xcrepro-DIGEST";
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(caches.keys().then((keys) =>
  Promise.all(keys.filter((key) => key.startsWith("xcrepro-") && key !== VERSION).map((key) => caches.delete(key))))));
self.addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  const named = /-[0-9a-f]{16}\./.test(event.request.url); // by its content: what is kept is right
  event.respondWith(caches.open(VERSION).then(async (cache) => {
    const kept = await cache.match(event.request, { ignoreSearch: true });
    if (kept && named) return kept;
    try {
      const answer = await fetch(event.request);
      if (answer.ok) await cache.put(event.request, answer.clone());
      return answer;
    } catch (error) {
      if (kept) return kept;
      throw error;
    }
  }));
});
