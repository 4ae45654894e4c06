// The same in an application: a bar and a column that stay, and a list that scrolls by itself.
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef } from 'react';
import { createRoot } from 'react-dom/client';

function App() {
  const box = useRef(null);
  const rows = useVirtualizer({ count: 60, getScrollElement: () => box.current, estimateSize: () => 50, overscan: 2 });
  return (
    <div style={{ position: 'fixed', inset: 0, display: 'grid', grid: '60px 1fr / 240px 1fr', font: '16px DejaVu Sans, sans-serif' }}>
      <header style={{ gridColumn: '1 / 3', background: '#ff00ff' }} />
      <nav style={{ background: '#dddddd' }}>Letters</nav>
      <main ref={box} style={{ overflow: 'auto', minHeight: 0 }}>
        <div style={{ position: 'relative', height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((row) => (
            <div key={row.key} style={{ position: 'absolute', top: 0, left: 0, right: 0, height: 50, transform: `translateY(${row.start}px)` }}>
              Letter {row.index + 1}
              {row.index % 10 === 0 && <div style={{ width: 120, height: 24, background: '#00ff00' }} />}
              {row.index === 59 && <div style={{ width: 200, height: 24, background: '#0000ff' }} />}
            </div>
          ))}
        </div>
      </main>
    </div>
  );
}

createRoot(document.getElementById('root')).render(<App />);
