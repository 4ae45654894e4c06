// A feed: the first answer brings people, the second their latest letters, and further pages come when the end is near.
import { QueryClient, QueryClientProvider, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { createRoot } from 'react-dom/client';
import './react-query.css';

const ask = (after, value) => fetch(`/make/json?after=${after}&body=${encodeURIComponent(JSON.stringify(value))}`).then((answer) => answer.json());

function Skeleton({ height }) {
  return <div className="skeleton" style={{ height }} aria-busy="true" />;
}

function People() {
  const people = useQuery({ queryKey: ['people'], queryFn: () => ask(700, ['Ada', 'Ben', 'Cleo', 'Dov']) });
  // Asked only when the first answer is there.
  const counts = useQuery({ queryKey: ['counts'], queryFn: () => ask(600, [12, 7, 31, 2]), enabled: people.isSuccess });
  if (people.isPending) return <Skeleton height={120} />;
  return (
    <ul className="people">
      {people.data.map((name, index) => (
        <li key={name}>
          <strong>{name}</strong>
          {counts.isPending ? <Skeleton height={24} /> : <span>{counts.data[index]} letters</span>}
          <i />
        </li>
      ))}
    </ul>
  );
}

function Letters() {
  const letters = useInfiniteQuery({
    queryKey: ['letters'],
    queryFn: ({ pageParam }) => ask(500, Array.from({ length: 5 }, (_, index) => ({ id: pageParam * 5 + index }))),
    initialPageParam: 0,
    getNextPageParam: (last, pages) => (pages.length < 4 ? pages.length : undefined),
  });
  const end = useRef(null);
  const { fetchNextPage, hasNextPage, isFetchingNextPage } = letters;
  useEffect(() => {
    const watch = new IntersectionObserver(([entry]) => entry.isIntersecting && hasNextPage && !isFetchingNextPage && fetchNextPage());
    watch.observe(end.current);
    return () => watch.disconnect();
  }, [fetchNextPage, hasNextPage, isFetchingNextPage]);
  return (
    <>
      {letters.isPending && <Skeleton height={160} />}
      {letters.data?.pages.flat().map(({ id }) => (
        <article key={id}>
          <img src={`/make/png/cyan?w=160&h=90&after=300&n=${id}`} width="160" height="90" loading="lazy" alt="" />
          <div>
            <h2>Letter {id + 1}</h2>
            <p>What somebody wrote, as the second answer told it.</p>
          </div>
        </article>
      ))}
      <div ref={end}>{isFetchingNextPage ? <Skeleton height={130} /> : hasNextPage ? 'More …' : <div className="last">That is all.</div>}</div>
    </>
  );
}

createRoot(document.getElementById('root')).render(
  <QueryClientProvider client={new QueryClient()}>
    <header>Letters</header>
    <main>
      <People />
      <Letters />
    </main>
  </QueryClientProvider>,
);
