// The usual dashboard: as high as the screen, a column that stays, and a main area that scrolls by itself.
import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import './tailwind.css';

function Dashboard() {
  const [numbers, setNumbers] = useState(null);
  useEffect(() => {
    fetch('/make/json?after=800&body=[12,34,56,78]').then((answer) => answer.json()).then(setNumbers);
  }, []);
  return (
    <div className="flex h-screen overflow-hidden bg-gray-100">
      <aside className="flex w-64 flex-col bg-gray-900 p-4 text-white">
        <div className="h-10 w-32 bg-[#ff00ff]" />
        {['Overview', 'Letters', 'People', 'Machines'].map((name) => <a key={name} className="mt-4 rounded px-2 py-1 hover:bg-gray-800">{name}</a>)}
        <div className="mt-auto text-sm text-gray-400">Signed in</div>
      </aside>
      <div className="flex flex-1 flex-col overflow-hidden">
        <header className="flex h-16 shrink-0 items-center border-b bg-white px-6 text-xl font-semibold">Overview</header>
        <main className="flex-1 overflow-y-auto p-6">
          <div className="grid grid-cols-4 gap-6">
            {(numbers ?? [0, 0, 0, 0]).map((number, index) =>
              numbers ? (
                <div key={index} className="rounded-lg bg-white p-4 shadow transition duration-700 starting:translate-y-8 starting:opacity-0">
                  <div className="text-sm">Number {index + 1}: {number}</div>
                  <div className="mt-2 h-10 w-[120px] bg-[#00ff00]" />
                </div>
              ) : (
                <div key={index} className="h-24 animate-pulse rounded-lg bg-[#ff0000]" />
              ),
            )}
          </div>
          <div className="mt-6 rounded-lg bg-white shadow">
            {Array.from({ length: 30 }, (_, index) => (
              <div key={index} className="flex h-14 items-center justify-between border-b px-4 last:border-0">
                <span>Letter {index + 1}</span>
                {index % 10 === 9 && <img className="h-10 w-40" src={`/make/png/cyan?after=300&n=${index}`} loading="lazy" alt="" />}
              </div>
            ))}
          </div>
          <footer className="mt-6 h-16 bg-[#0000ff]" />
        </main>
      </div>
    </div>
  );
}

createRoot(document.getElementById('root')).render(<Dashboard />);
