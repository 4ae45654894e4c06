// Sections that come in when they are seen, one after the other, and numbers that count up.
import { animate, motion, useInView, useMotionValue, useTransform } from 'motion/react';
import { useEffect, useRef } from 'react';
import { createRoot } from 'react-dom/client';

const shelf = { hidden: {}, seen: { transition: { staggerChildren: 0.15 } } };
const card = { hidden: { opacity: 0, y: 60, scale: 0.8 }, seen: { opacity: 1, y: 0, scale: 1, transition: { duration: 0.6 } } };

function Bar({ to }) {
  const place = useRef(null);
  const seen = useInView(place, { once: true, amount: 'all' });
  const width = useMotionValue(0);
  const text = useTransform(() => `${Math.round(width.get())}`);
  useEffect(() => {
    if (seen) return animate(width, to, { duration: 1.2 }).stop;
  }, [seen, to, width]);
  return (
    <div ref={place} style={{ height: 40 }}>
      <motion.div style={{ width, height: 40, background: '#00ffff' }}>{text}</motion.div>
    </div>
  );
}

createRoot(document.getElementById('root')).render(
  <div style={{ font: '16px DejaVu Sans, sans-serif', margin: -8 }}>
    <motion.header
      initial={{ y: -100 }}
      animate={{ y: 0 }}
      transition={{ delay: 0.3, type: 'spring', stiffness: 120 }}
      style={{ position: 'sticky', top: 0, height: 64, background: '#ff00ff', zIndex: 1 }}
    />
    {[1, 2, 3, 4].map((number) => (
      <section key={number} style={{ height: 640, padding: '40px 100px', boxSizing: 'border-box' }}>
        <h2>Part {number}</h2>
        <motion.div
          variants={shelf}
          initial="hidden"
          whileInView="seen"
          viewport={{ once: true, amount: 0.5 }}
          style={{ display: 'flex', gap: 40, marginBottom: 40 }}
        >
          {[1, 2, 3].map((place) => (
            <motion.div key={place} variants={card} style={{ width: 200, height: 150, background: '#00ff00' }} />
          ))}
        </motion.div>
        <Bar to={600} />
      </section>
    ))}
    <footer style={{ height: 100, background: '#0000ff' }} />
  </div>,
);
