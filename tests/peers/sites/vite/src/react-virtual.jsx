// A long list of which only the rows on the screen exist; the window scrolls, and each row is as high as it turns out to be.
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { createRoot } from 'react-dom/client';

function Rows() {
  const rows = useWindowVirtualizer({ count: 120, estimateSize: () => 40, overscan: 3, scrollMargin: 80 });
  return (
    <div style={{ position: 'relative', height: rows.getTotalSize() }}>
      {rows.getVirtualItems().map((row) => (
        <div
          key={row.key}
          data-index={row.index}
          ref={rows.measureElement}
          style={{ position: 'absolute', top: 0, left: 0, right: 0, transform: `translateY(${row.start - 80}px)` }}
        >
          <div style={{ display: 'flex', gap: 20, height: row.index % 3 === 0 ? 60 : 36, borderBottom: '1px solid #ccc', boxSizing: 'border-box' }}>
            <span>Row {row.index + 1}</span>
            {row.index % 10 === 0 && <i style={{ width: 120, height: 30, background: row.index % 20 === 0 ? '#00ff00' : '#00ffff' }} />}
          </div>
        </div>
      ))}
    </div>
  );
}

createRoot(document.getElementById('root')).render(
  <div style={{ font: '16px DejaVu Sans, sans-serif', margin: -8 }}>
    <header style={{ height: 80, background: '#ff00ff' }}>A hundred and twenty rows</header>
    <Rows />
    <footer style={{ height: 80, background: '#0000ff' }} />
  </div>,
);
